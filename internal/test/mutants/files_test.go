package mutants

// files are mistakes with single files that people dropped.
var files = []mutant{
	{
		name: "ExchangedFileTakenForTheSettledOne", promise: "I17", file: "internal/drop/claimfile.go",
		old: "return c, !stateOf(moved).isEqual(seen), nil", new: "return c, false, nil", tests: []string{"-run ClaimFile " + folders},
	},
	{
		name: "ClaimWithEmptyFolderAdopted", promise: "I1", file: "internal/drop/claim.go",
		old: "if err == nil && f.cfg.TakesFiles {", new: "if false {", tests: []string{"-run ClaimFile " + folders},
	},
	{
		name: "NoteTakenAsDocument", promise: "I19", file: "internal/drop/claimfile.go",
		old: "if IsReservedName(name) || IsNoteName(name) {", new: "if IsReservedName(name) {", tests: []string{"-run ClaimFile " + folders},
	},
	{
		name: "CutOffFileTakenAtOnce", promise: "I17", file: "internal/watch/scheduler.go",
		old: "case incomplete != nil && quiet < incompletePatience*s.cfg.Settle:", new: "case incomplete != nil && quiet < 0:", tests: []string{"-run Files " + watching},
	},
	{
		name: "UnreadableFileTakenAfterAWhile", promise: "I24", file: "internal/watch/scheduler.go",
		old: "case isFault: // the file could not be looked into", new: "case isFault && quiet < incompletePatience*s.cfg.Settle:", tests: []string{"-run Files " + watching},
	},
	{
		name: "CopyNotReadBack", promise: "I4", file: "internal/packager/pdf.go",
		old: "case n != c.size || archive.Digest(sum.Sum(nil)) != c.sha256:", new: "case n < 0:", tests: []string{"-run PDF " + packing},
	},
	{
		name: "NotifiedPersonInTheIdentity", promise: "I2", file: "internal/packager/pdf.go",
		old: "archive.DerivePDFID(rules.Receiving, copied.sha256),", new: "archive.DerivePDFID(rules.Receiving+rules.Notify, copied.sha256),", tests: []string{"-run PDF " + packing},
	},
	{
		name: "CutOffPDFSent", promise: "I17", file: "internal/packager/pdf.go",
		old: "case !hasPDFEnd(c.tail):", new: "case len(c.tail) == 0:", tests: []string{"-run PDF " + packing},
	},
	{
		name: "PDFInTheSpoolTakenForForeign", promise: "I21", file: "internal/spool/count.go",
		old: "slices.ContainsFunc(ledger.Routes(), isOfRoute)", new: "isOfRoute(ledger.Vault)", tests: []string{"-run TestSpool_I vaultd/internal/spool"},
	},
	{
		name: "EveryClaimIsForTheVault", promise: "I8", file: "internal/dropwork/intake.go",
		old: "Route: cmp.Or(h.Settings.Route, ledger.Vault),", new: "Route: cmp.Or(ledger.Vault, h.Settings.Route),", tests: []string{"-run TestPDFDrop vaultd/internal/daemon"},
	},
	{
		name: "RescannedFileTakenForTheCorrection", promise: "I1", file: "internal/dropwork/returned.go",
		old: "case d.Settings.TakesFiles() && len(d.readFeatures(there.Root()).files) == 0:", new: "case d.Settings.TakesFiles():", tests: []string{"-run TestPDFDrop_I1 vaultd/internal/daemon"},
	},
	{
		name: "KeysOfTheOtherRouteIgnored", promise: "I8", file: "internal/config/routes.go",
		old: "return there && !reflect.DeepEqual(", new: "return there && i < 0 && !reflect.DeepEqual(", tests: []string{"-run Route vaultd/internal/config"},
	},
	{
		name: "ExchangedFileNotSettledAgain", promise: "I17", file: "internal/dropwork/intake.go",
		old: "if !hasChanged {", new: "if hasChanged || err == nil {", tests: []string{"-run TestPDFDrop_I17 vaultd/internal/daemon"},
	},
}
