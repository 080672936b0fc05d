package mutants

// outside are mistakes in what people and other programs see.
var outside = []mutant{
	{
		name: "OpenSecretFileAccepted", promise: "I27", file: "internal/config/secret.go",
		old: "case info.Mode().Perm()&^secretRights != 0:", new: "case info.Mode().Perm() == 0:", tests: []string{"-run Secret vaultd/internal/config"},
	},
	{
		name: "SecretPrintsItself", promise: "I7", file: "internal/config/secret.go",
		old: "func (Secret) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, secretShown) }", new: "func (s Secret) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, string(s)) }", tests: []string{"-run Secret|Config vaultd/internal/config"},
	},
	{
		name: "FormulaInCSV", promise: "I7", file: "internal/report/csv.go",
		old: "mark, sanitize.Cell(r.Folder),", new: "mark, r.Folder,", tests: []string{"vaultd/internal/report"},
	},
	{
		name: "SumsOfAPartOfAMonth", promise: "I32", file: "internal/report/listing.go",
		old: "g.Month == nil && !t.full {", new: "g.Month == nil {", tests: []string{"-run HTML_TableByMonth vaultd/internal/report"},
	},
	{
		name: "LinesCountedAtEachReplay", promise: "I32", file: "internal/proof/replay.go",
		old: "if l.err == nil && !f.repeated {", new: "if l.err == nil {", tests: []string{"-run Examine vaultd/internal/report"},
	},
	{
		name: "ReportRemembersEveryEntry", promise: "I21", file: "internal/report/examine.go",
		old: "r.journal(ctx, r.entry())", new: "r.journal(ctx, nil)", tests: []string{"-run Examine vaultd/internal/report"},
	},
	{
		name: "ReportNamesNoEntryWithoutALine", promise: "I1", file: "internal/report/examine.go",
		old: "again := !report.OK() || differs() || isEqual\n", new: "again := isEqual && t.whole.Seen == 0\n", tests: []string{"-run Examine vaultd/internal/report"},
	},
	{
		name: "EarlierExaminationIsBelieved", promise: "I12", file: "internal/report/examine.go",
		old: "if again && c.Examined != nil {", new: "if again && c.Examined != nil && most == 0 {", tests: []string{"-run Examine_I12 vaultd/internal/report"},
	},
	{
		name: "ResultHidesWhatItRestsOn", promise: "I14", file: "internal/report/verdict.go",
		old: "\tv.Text += a.describeBasis()\n", new: "", tests: []string{"-run Examine_I12 vaultd/internal/report"},
	},
	{
		name: "ReportOfATimeRestsOnACheckpoint", promise: "I14", file: "cmd/vaultd/audit.go",
		old: "extent(f.whole || f.asOf != \"\")", new: "extent(f.whole)", tests: []string{"-run TestAudit_I14_AsOf vaultd/cmd/vaultd"},
	},
	{
		name: "ReportIsSilentOfAnotherPast", promise: "I15", file: "cmd/vaultd/audit_basis.go",
		old: "if found.OtherPast != \"\" {", new: "if found.OtherPast == \"-\" {", tests: []string{"-run TestAudit_I14_I15 vaultd/cmd/vaultd"},
	},
	{
		name: "ActsBeforeTheCheckpointForgotten", promise: "I29", file: "internal/proof/state.go",
		old: "s.RestLostPosts, s.Acts.clone()", new: "s.RestLostPosts, Acts{}", tests: []string{"-run TestContinue vaultd/internal/proof"},
	},
	{
		name: "AmountIsRounded", promise: "I12", file: "internal/report/xlsxcells.go",
		old: "err != nil || len(digits) > exactDigits ||", new: "err != nil || len(digits) > 99 ||", tests: []string{"-run XLSX_NothingIsRounded vaultd/internal/report"},
	},
	{
		name: "CompleteWithoutAList", promise: "I32", file: "internal/report/verdict.go",
		old: "case s.Expected != nil || s.Booked != nil:", new: "default:", tests: []string{"-run CompleteNeedsAList vaultd/internal/report"},
	},
	{
		name: "ListedAndMissingIsComplete", promise: "I32", file: "internal/report/verdict.go",
		old: "s.Expected.describeShortfall() + s.Booked", new: "s.Booked", tests: []string{"-run CompleteNeedsAList vaultd/internal/report"},
	},
	{
		name: "AmountIsGuessed", promise: "I32", file: "internal/expected/read.go",
		old: "case decimal == 0 && strings.ContainsAny(digits, \".,\") && strings.Trim(digits, \".,0123456789\") == \"\":", new: "case digits == \"\":", tests: []string{"-run NeverGuesses vaultd/internal/expected"},
	},
	{
		name: "RowsDisappearInQuotes", promise: "I32", file: "internal/expected/read.go",
		old: "line := findLooseQuote(data, byte(separator)); line > 0", new: "line := 0; line > 0", tests: []string{"-run NoRowDisappears vaultd/internal/expected"},
	},
	{
		name: "PartOfAListIsComplete", promise: "I32", file: "internal/report/verdict.go",
		old: "case s.Expected != nil && s.Expected.Unlisted > 0:", new: "case false:", tests: []string{"-run CompleteNeedsAList vaultd/internal/report"},
	},
	{
		name: "LostZerosHintedForAnyNumber", promise: "I31", file: "internal/report/expected.go",
		old: "if _, same := compareToRow(m.list.Row(i), doc); same && !yield(i) {", new: "if !yield(i) {", tests: []string{"-run TestExpected_I31 vaultd/internal/report"},
	},
	{
		name: "ReportNotedThoughNotWritten", promise: "I1", file: "cmd/vaultd/audit.go",
		old: "\tif err != nil || !f.sinceLast {\n\t\treturn err", new: "\tif !f.sinceLast {\n\t\treturn err", tests: []string{"-run Audit_SinceLast vaultd/cmd/vaultd"},
	},
	{
		name: "ReportForgetsWhatWasOpen", promise: "I1", file: "internal/report/since.go",
		old: "\treturn found || s.open[key]\n", new: "\treturn found\n", tests: []string{"-run Since vaultd/internal/report"},
	},
	{
		name: "PageGrowsWithTheLedger", promise: "I21", file: "internal/report/listing.go",
		old: "if p.room -= size; p.room < 0 {", new: "if p.room -= size; false {", tests: []string{"-run PageHasABoundedSize vaultd/internal/report"},
	},
	{
		name: "ReportCutOffIsKept", promise: "I12", file: "cmd/vaultd/audit_files.go",
		old: "if wrong == nil && !s.isWhole() {", new: "if false {", tests: []string{"-run TablesWholeOrNotAtAll vaultd/cmd/vaultd"},
	},
	{
		name: "SinceForgottenAtRestart", promise: "I32", file: "internal/dropwork/drop.go",
		old: "FirstSeen: shared.Scans.firstSeen(settings),", new: "FirstSeen: nil,", tests: []string{"-run Scans vaultd/internal/daemon"},
	},
	{
		name: "ScanBeforeTheFirstLook", promise: "I32", file: "internal/dropwork/scan.go",
		old: "s.LastScan, s.Pending, s.Unnamed, s.UnnamedSince = before.LastScan, before.Pending, before.Unnamed, before.UnnamedSince", new: "", tests: []string{"-run Scans vaultd/internal/daemon"},
	},
	{
		name: "GreenWhileThingsLie", promise: "I32", file: "internal/report/verdict.go",
		old: " || a.isSafeMode() || shortfall != \"\":", new: " || a.isSafeMode():", tests: []string{"-run Scans vaultd/internal/daemon"},
	},
	{
		name: "GreenWhileNobodyLooks", promise: "I32", file: "internal/report/not_taken.go",
		old: "case s.Fault != \"\" && ledger.IsOverdue(s.FaultSince, a.c.Made, d.RemindAfter):", new: "case s.Fault == \"none\":", tests: []string{"-run Pending vaultd/internal/report"},
	},
	{
		name: "ListsWithoutBound", promise: "I21", file: "cmd/vaultd/control_slots.go",
		old: "maxLists    = 1 ", new: "maxLists    = 9 ", tests: []string{"-run TestControl_I21_AListThatComesSlowly vaultd/cmd/vaultd"},
	},
	{
		name: "InputWithoutADeadline", promise: "I21", file: "cmd/vaultd/control.go",
		old: "conn.SetReadDeadline(time.Now().Add(cmp.Or(s.patient, inputTime)))", new: "conn.SetReadDeadline(time.Now().Add(cmp.Or(s.patient, inputTime) + time.Hour))",
		tests: []string{"-run TestControl_I21_AListThatComesSlowly vaultd/cmd/vaultd"},
	},
	{
		name: "AnybodyMayCommand", promise: "I27", file: "cmd/vaultd/control_slots.go",
		old: "if !s.mayGiveCommands(p) {", new: "if !s.mayGiveCommands(p) && p.uid == 0 {", tests: []string{"-run Control|Socket|Peer vaultd/cmd/vaultd"},
	},
	{
		name: "CloseHasItsOwnTable", promise: "I13", file: "internal/present/action.go",
		old: "\t_, err := ledger.Transition(", new: "\tif one.Name == \"close\" && e.State == ledger.Archived {\n\t\treturn ledger.ErrIllegal\n\t}\n\t_, err := ledger.Transition(",
		tests: []string{"-run Acts|Why|Close vaultd/cmd/vaultd"},
	},
	{
		name: "AliasNotResolved", promise: "I19", file: "internal/durable/position.go",
		old: "real, below, err := resolvePath(path)", new: "real, below, err := \"/\", filepath.Clean(path), error(nil)", tests: []string{"-run Position vaultd/internal/durable", "-run I16_I19 vaultd/cmd/vaultd"},
	},
}
