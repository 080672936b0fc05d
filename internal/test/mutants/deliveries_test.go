package mutants

// deliveries are mistakes by which what was delivered passes for archived.
var deliveries = []mutant{
	{
		name: "DeliveredIsArchivedInTheVerdict", promise: "I12", file: "internal/report/verdict.go",
		old: "formatCount(b.States[ledger.Archived], \"is\", \"are\"))", new: "formatCount(b.States[ledger.Archived]+b.States[ledger.Delivered], \"is\", \"are\"))",
		tests: []string{"-run TestDelivered vaultd/internal/report"},
	},
	{
		name: "DeliveredIsSummedWithArchived", promise: "I12", file: "internal/report/counts.go",
		old: "\tif e.State != ledger.Archived {\n\t\treturn\n", new: "\tif e.State != ledger.Archived && e.State != ledger.Delivered {\n\t\treturn\n",
		tests: []string{"-run TestDelivered vaultd/internal/report"},
	},
	{
		name: "DeliveryIsBilled", promise: "I12", file: "internal/ledger/transactions.go",
		old: "\tif !e.Route.IsAsked() {\n\t\treturn nil\n", new: "\tif false {\n\t\treturn nil\n", tests: []string{"-run TestTransactions_I12 " + pure},
	},
	{
		name: "DeliveredTodayIsArchivedToday", promise: "I12", file: "internal/statusfile/day.go",
		old: "\t\tt.delivered.add(e.Folder, at)\n", new: "\t\tt.archived.add(e.Folder, at)\n", tests: []string{"-run DayCounts_I12 vaultd/internal/statusfile"},
	},
	{
		name: "DeliveredTodayInTheLedgerIsArchived", promise: "I12", file: "internal/ledger/boltledger/counts.go",
		old: "\t\tkind = countDelivered\n", new: "\t\tkind = countArchived\n", tests: []string{"-run TestCounts_I12 " + onDisk},
	},
	{
		name: "DeliveredDroppedOnThePage", promise: "I12", file: "internal/page/status.go",
		old: "\tcase archived == 0:\n\t\treturn f.T(\"%d delivered\", delivered)\n\t}\n", new: "\t}\n\treturn f.FormatNumber(archived + delivered)\n", tests: []string{"-run I12 vaultd/internal/page"},
	},
}
