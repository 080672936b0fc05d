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
		old: "if IsReservedName(name) || isNote(name) {", new: "if IsReservedName(name) {", tests: []string{"-run ClaimFile " + folders},
	},
}
