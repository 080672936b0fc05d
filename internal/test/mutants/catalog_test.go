package mutants

const finding = "-short vaultd/internal/catalog"

// catalog are mistakes in what people find, and in the file that helps to find it.
var catalog = []mutant{
	{
		name: "StopWaitsForASearch", promise: "I23", file: "internal/catalog/catalog.go",
		old: "stop := context.AfterFunc(f.ending, cancel)", new: "stop := context.AfterFunc(f.ending, func() {})", tests: []string{"-run TestCatalog_I23_StoppingEnds vaultd/internal/catalog"},
	},
	{
		name: "CatalogOfAnotherUserKept", promise: "I26", file: "internal/catalog/file.go",
		old: "Uid != uint32(me) {", new: "Uid == uint32(me)+7 {", tests: []string{"-run TestCatalog_I26_AFileOfAnother vaultd/internal/catalog"},
	},
	{
		name: "CatalogTailNotLookedUp", promise: "I32", file: "internal/catalog/search.go",
		old: "math.MaxInt64, sortedKeys(changed)", new: "math.MaxInt64, sortedKeys(changed)[:0]", tests: []string{finding},
	},
	{
		name: "CatalogLateRowInPlace", promise: "I32", file: "internal/catalog/search.go",
		old: "if !r.late {", new: "if true {", tests: []string{finding},
	},
	{
		name: "CatalogWordInAPathByItsPieces", promise: "I32", file: "internal/catalog/match.go",
		old: "any = append(any, quoted(placeToken(id)))", new: "_ = id", tests: []string{finding},
	},
	{
		name: "CatalogOneSpellingIndexed", promise: "I32", file: "internal/catalog/tokens.go",
		old: "for _, form := range spellingsOf(text) {", new: "for _, form := range spellingsOf(text)[:1] {", tests: []string{finding},
	},
	{
		name: "CatalogTokensNeverChanged", promise: "I32", file: "internal/catalog/write.go",
		old: "err == nil && stored != digest {", new: "err == nil && stored == digest {", tests: []string{finding},
	},
	{
		name: "CatalogOfAnotherJournal", promise: "I32", file: "internal/catalog/file.go",
		old: "case now != (ledger.Head{N: at.head.N, Hash: at.head.Hash}):", new: "case now.N > 0 && now == (ledger.Head{}):", tests: []string{finding},
	},
	{
		name: "CatalogWithoutItsLog", promise: "I32", file: "internal/catalog/file.go",
		old: "version == inUse && errors.Is(walErr, fs.ErrNotExist)", new: "version > inUse && errors.Is(walErr, fs.ErrNotExist)", tests: []string{finding},
	},
	{
		name: "CatalogRemovesWhatIsNotOurs", promise: "I19", file: "internal/catalog/file.go",
		old: "if err := os.Rename(c.path()+end, to+end); err != nil &&", new: "if err := os.RemoveAll(c.path() + end); err != nil &&", tests: []string{finding},
	},
	{
		name: "CatalogMadeByACommand", promise: "I27", file: "internal/catalog/stopped.go",
		old: "openDatabase(c.path(), stoppedPragmas)", new: "openDatabase(c.path(), writePragmas)", tests: []string{finding},
	},
	{
		name: "CatalogReadableByAll", promise: "I27", file: "internal/catalog/rebuild.go",
		old: "os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600", new: "os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o644", tests: []string{finding},
	},
	{
		name: "HistoryWithoutWhatAClockHid", promise: "I14", file: "internal/present/dossier.go",
		old: "append(starts[:min(len(starts), 1)], 1)", new: "starts[:min(len(starts), 1)]", tests: []string{"-run HistoryIsWhole vaultd/cmd/vaultd"},
	},
	{
		name: "HistoryOfTheFirstWindowAlone", promise: "I14", file: "internal/present/dossier.go",
		old: "append(starts[:min(len(starts), 1)], 1)", new: "[]uint64(nil)", tests: []string{"-run HistoryIsWhole vaultd/cmd/vaultd"},
	},
	{
		name: "CatalogKeepsErasedWords", promise: "I7", file: "internal/catalog/write.go",
		old: "case wasErasable && !r.erasable:", new: "case wasErasable && !r.erasable && isNewest:", tests: []string{"-run TestCatalog_I7_Erased vaultd/internal/catalog"},
	},
	{
		name: "CatalogErasedLater", promise: "I7", file: "internal/catalog/catalog.go",
		old: "\t\t\t\t_ = removeWithBesides(c.path())\n", new: "", tests: []string{"-run TestCatalog_I7_Erased vaultd/internal/catalog"},
	},
	{
		name: "CatalogReplacedTextsStay", promise: "I7", file: "internal/catalog/file.go",
		old: "&_pragma=secure_delete(1)", new: "", tests: []string{"-run TestCatalog_I7_Changed vaultd/internal/catalog"},
	},
	{
		name: "CatalogPageBeginsAnew", promise: "I32", file: "internal/catalog/search.go",
		old: "ask: ask, last: after}", new: "ask: ask}", tests: []string{finding},
	},
	{
		name: "CatalogNumberInTheFolderAlone", promise: "I32", file: "internal/catalog/filter.go",
		old: "occurs(f.Number, m.Number)", new: "occurs(nil, m.Number)", tests: []string{"-run TestList_ByWhat vaultd/cmd/vaultd"},
	},
	{
		name: "CatalogAmountsAsText", promise: "I32", file: "internal/catalog/row.go",
		old: "\t\trank = -rank\n", new: "\t\trank = +rank\n", tests: []string{"-short -run ListSorted vaultd/internal/catalog"},
	},
	{
		name: "CatalogDamageForgotten", promise: "I26", file: "internal/catalog/search.go",
		old: "\t\tc.told.Damaged = again.why\n", new: "", tests: []string{finding},
	},
	{
		name: "CatalogLogThroughALink", promise: "I19", file: "internal/catalog/file.go",
		old: "err == nil && !hasOneName(beside)", new: "err == nil && beside == nil", tests: []string{finding},
	},
	{
		name: "CatalogReplacedUnnoticed", promise: "I32", file: "internal/catalog/search.go",
		old: "err := s.c.checkFile(f.of); err != nil", new: "err := s.c.checkFile(f.of); err != nil && f.of == nil", tests: []string{finding},
	},
	{
		name: "CatalogCountsNeverWrong", promise: "I32", file: "internal/catalog/count.go",
		old: "\tc.uncounted = true\n", new: "", tests: []string{"-run Compare vaultd/internal/catalog"},
	},
	{
		name: "CatalogBehindIsCompared", promise: "I32", file: "internal/catalog/count.go",
		old: "case head.N < before.N:", new: "case head.N > before.N:", tests: []string{"-run Compare vaultd/internal/catalog"},
	},
	{
		name: "CatalogPlaceNotReindexed", promise: "I32", file: "internal/catalog/tokens.go",
		old: "[]string{r.Folder, r.Dest, r.meta.Number", new: "[]string{r.Folder, r.meta.Number", tests: []string{finding},
	},
	{
		name: "CatalogShortWordByLongPieces", promise: "I32", file: "internal/catalog/tokens.go",
		old: "if s <= p.len() {\n", new: "if s <= p.len()+1 && p.len() > 1 {\n", tests: []string{finding},
	},
	{
		name: "CatalogSortedAsItWas", promise: "I32", file: "internal/catalog/sorted.go",
		old: "if !changed[r.key] {", new: "if true || !changed[r.key] {", tests: []string{"-short -run ListSorted vaultd/internal/catalog"},
	},
	{
		name: "CatalogSortedByASCIIAlone", promise: "I32", file: "internal/catalog/order.go",
		old: "coalesce(folder_lower, lower(folder))", new: "lower(folder)", tests: []string{"-short -run ListSorted vaultd/internal/catalog"},
	},
	{
		name: "HistoryOfAnUnfinishedCatalog", promise: "I32", file: "internal/catalog/history.go",
		old: `why != "" || f == nil {`, new: "f == nil {", tests: []string{"-run TestHistory vaultd/internal/catalog"},
	},
	{
		name: "HistoryCutInSilence", promise: "I32", file: "cmd/vaultd/history.go",
		old: "if h.IsRejectedCut = len(taken) > present.RejectedAtMost; h.IsRejectedCut {", new: "if len(taken) > present.RejectedAtMost {", tests: []string{"-run TestHistory_I21 vaultd/cmd/vaultd"},
	},
	{
		name: "HistoryZerosForDamage", promise: "I26", file: "cmd/vaultd/history.go",
		old: "return present.History{Missing: damage.Error()}, nil", new: "h.Missing = damage.Error()\n\t\treturn h, nil", tests: []string{"-run TestHistory_I26 vaultd/cmd/vaultd"},
	},
	{
		name: "HistoryDayCutByAZone", promise: "I12", file: "internal/ledger/boltledger/counts.go",
		old: " || isCounted && group != groupAtEnd {", new: " || isCounted && group != groupAtEnd && !isCountedAtEnd {", tests: []string{"-run EveryZone vaultd/internal/ledger/boltledger"},
	},
	{
		name: "HistoryDeliveredIsArchived", promise: "I12", file: "internal/present/history.go",
		old: "h.MonthOf(day.Year(), day.Month()).Delivered += uint64(n)", new: "h.MonthOf(day.Year(), day.Month()).Archived += uint64(n)", tests: []string{"-run TestHistory_I12 vaultd/cmd/vaultd"},
	},
	{
		name: "HistoryDelayOfADeliveryAmongTheArchived", promise: "I12", file: "internal/present/history.go",
		old: "h.Delays[DelayPart(d)].Delivered++", new: "h.Delays[DelayPart(d)].Documents++", tests: []string{"-run TestHistory_I12 vaultd/cmd/vaultd"},
	},
	{
		name: "CatalogWithoutAddresses", promise: "I32", file: "internal/catalog/row.go",
		old: "r.sent.Receiving, r.sent.Notify}", new: "r.sent.Receiving}", tests: []string{"-run TestSearch_I32_FindsTheAddresses vaultd/internal/catalog"},
	},
	{
		name: "CatalogReadsOnAfterAnError", promise: "I23", file: "internal/catalog/rebuild.go",
		old: "if err == nil {\n\t\terr = walked", new: "if err == nil && walked == errUnused {\n\t\terr = walked", tests: []string{"-run TestReadAhead_I23 vaultd/internal/catalog"},
	},
	{
		name: "ChartOfDeliveriesAmongTheArchived", promise: "I12", file: "internal/report/chart.go",
		old: "[]uint64{l.Documents, l.Delivered}", new: "[]uint64{l.Documents + l.Delivered}", tests: []string{"-run TestCharts_I12 vaultd/internal/report"},
	},
	{
		name: "PlainMetadataWithEscapes", promise: "I10", file: "internal/archive/metadata.go",
		old: "case c == '\\\\' || c < ' ':", new: "case c < ' ':", tests: []string{"-run ParseMetadata vaultd/internal/archive"},
	},
	{
		name: "WorkbookRowsOfOneNumber", promise: "I21", file: "internal/report/xlsx.go",
		old: "writeAll(w, row)\n\t\tcells = after", new: "writeAll(w, \"2\")\n\t\tcells = after", tests: []string{"-run XLSX vaultd/internal/report"},
	},
}
