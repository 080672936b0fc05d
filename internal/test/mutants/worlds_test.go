package mutants

const (
	lostLedgers = "-run SetBack_I2 vaultd/internal/test/simulation"
	onSlots     = "-run SlotsOfWhatIsDelivered vaultd/internal/proof"
)

// pdfWorlds are mistakes about single PDFs that only a world with a service, folders and people in it shows, and mistakes of the check that
// such worlds rely on.
var pdfWorlds = []mutant{
	{
		name: "ClosedInDoubtIsForgotten", promise: "I2", file: "internal/recovery/rebuild.go",
		old: "\tev.InDoubt = true\n", new: "", tests: []string{lostLedgers},
	},
	{
		name: "ClosedInDoubtHasNoIdentity", promise: "I2", file: "internal/recovery/rebuild.go",
		old: "taken || p.isOpening(sealed.ID)", new: "taken || !p.isOpening(sealed.ID)", tests: []string{lostLedgers},
	},
	{
		name: "ClosedInDoubtIsForAnotherAddress", promise: "I2", file: "internal/daemon/restore.go",
		old: "Receiving: settings.Receiving, ", new: "", tests: []string{lostLedgers},
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
