package mutants

const (
	lostLedgers = "-run SetBack_I2 vaultd/internal/test/simulation"
	onSlots     = "-run SlotsOfWhatIsDelivered vaultd/internal/proof"
	unpacked    = "-run Reconcile_I2_APDF vaultd/internal/recovery"
)

// pdfWorlds are mistakes about single PDFs that only a world with a service, folders and people in it shows, and mistakes of the check that
// such worlds rely on.
var pdfWorlds = []mutant{
	{
		name: "ClosedInDoubtIsForgotten", promise: "I2", file: "internal/recovery/identify.go",
		old: "\tev.InDoubt = true\n", new: "", tests: []string{lostLedgers},
	},
	{
		name: "ClosedInDoubtHasNoIdentity", promise: "I2", file: "internal/recovery/identify.go",
		old: "\tev.ID, ev.Content, ev.Metadata, ev.Number, ev.Package, ev.Seal = sealed.ID", new: "\tev.ID, ev.Content, ev.Metadata, ev.Number, ev.Package, ev.Seal = ev.ID", tests: []string{lostLedgers},
	},
	{
		name: "ClosedInDoubtIsForAnotherAddress", promise: "I2", file: "internal/recovery/identify.go",
		old: "s.Package = is.ID, ", new: "s.Package = archive.DerivePDFID(\"x\", is.Content), ", tests: []string{lostLedgers},
	},
	{
		name: "UnderWayHasNoIdentity", promise: "I2", file: "internal/recovery/identify.go",
		old: "if !e.IsUnidentified() {", new: "if e.IsUnidentified() {", tests: []string{unpacked},
	},
	{
		name: "UnderWayIsClearedWhileItsDropIsAway", promise: "I2", file: "internal/recovery/identify.go",
		old: "return nil, &unreadError{error: errors.New(\"its drop folder is away\")}", new: "return nil, nil", tests: []string{unpacked},
	},
	{
		name: "GivenBackMeanwhileHasNoIdentity", promise: "I2", file: "internal/recovery/identify.go",
		old: "errors.Is(err, fs.ErrNotExist) && returned.Path != \"\"", new: "false", tests: []string{unpacked},
	},
	{
		name: "UnderWayTakesTheIdentityOfAnother", promise: "I2", file: "internal/recovery/identify.go",
		old: "r, string(v)) != ledger.Proceed ||", new: "r, string(v)) == ledger.Proceed ||", tests: []string{unpacked},
	},
	{
		name: "RejectionHidesADeliveryNote", promise: "I2", file: "internal/recovery/delivered.go",
		old: "taken, ev.Supersedes = false, first.Key", new: "taken, ev.Supersedes = true, first.Key", tests: []string{"-run WhatCameAfterARejection vaultd/internal/recovery"},
	},
	{
		name: "RejectionHidesADoubt", promise: "I2", file: "internal/recovery/returned.go",
		old: "isKnown = !d.tellsOfDoubt(text)", new: "isKnown = text != \"\"", tests: []string{"-run WhatCameAfterARejection vaultd/internal/recovery"},
	},
	{
		name: "ReleasedAndClosedIsNoDoubt", promise: "I2", file: "internal/ledger/operator.go",
		old: "if e.repeatsWhatMayBeDelivered() {", new: "if false {", tests: []string{"-run Released_I2_Doubt vaultd/internal/ledger"},
	},
	{
		name: "QuarantinedPDFIsNotDoubted", promise: "I2", file: "internal/ledger/reconcile.go",
		old: "e.State == Quarantined && e.Source == Claimed && e.Cause.Code", new: "false && e.Cause.Code", tests: []string{"-run ReconcileRequired_I2_WhatWasNeverPacked vaultd/internal/ledger"},
	},
	{
		name: "DeliveryNotesAreNotRead", promise: "I2", file: "internal/recovery/delivered.go",
		old: "\t\tif err == nil {\n\t\t\tf, err = p.readDeliveredFolder", new: "\t\tif err == nil && l.Path == \"\" {\n\t\t\tf, err = p.readDeliveredFolder", tests: []string{lostLedgers},
	},
	{
		name: "SecondUploadNotSeen", promise: "I2", file: "internal/proof/slots.go",
		old: "case uploads > 1:", new: "case uploads > 2:", tests: []string{onSlots},
	},
	{
		name: "DeliveredNotHeldAgainstItsSlot", promise: "I12", file: "internal/proof/slots.go",
		old: "e.State == ledger.Delivered && !s.isStored(e)", new: "false && !s.isStored(e)", tests: []string{onSlots},
	},
}
