package mutants

// kept are mistakes in how the ledger is kept.
var kept = []mutant{
	{
		name: "DictionaryNotInTheLedger", promise: "I28", file: "internal/ledger/boltledger/form.go",
		old: "meta.Put(dictionaryKey, []byte(dictionary))", new: "meta.Put(dictionaryKey, nil)", tests: []string{"-run TestDocs_I14 " + onDisk},
	},
	{
		name: "InflatedWithoutABound", promise: "I21", file: "internal/ledger/boltledger/deflate.go",
		old: "\tcase n > mostInflated:", new: "\tcase n < 0:", tests: []string{"-run TestDeflate_I21 " + onDisk},
	},
	{
		name: "HiddenBehindABlock", promise: "I14", file: "internal/ledger/boltledger/deflate.go",
		old: "\tif in.Len() > 0 {", new: "\tif in.Len() < 0 {", tests: []string{"-run TestDeflate_I21 " + onDisk},
	},
	{
		name: "LineOfRootLosesItsUser", promise: "I29", file: "internal/ledger/line.go",
		old: "if l.UID != nil {", new: "if l.UID != nil && *l.UID != 0 {", tests: []string{"-run TestLine_I14 " + pure},
	},
	{
		name: "MonthsCutByHours", promise: "I12", file: "internal/ledger/boltledger/totals.go",
		old: "const quarterHour = 15 * time.Minute", new: "const quarterHour = time.Hour", tests: []string{"-run TestSpans " + onDisk},
	},
	{
		name: "LastDayOfAMonthWithTheOthers", promise: "I12", file: "internal/ledger/boltledger/totals.go",
		old: "if d == 1 || d == last.Day() {", new: "if d == 1 {", tests: []string{"-run TestTotals_I12 " + onDisk},
	},
	{
		name: "DayOfTheTimeCountedWhole", promise: "I26", file: "internal/ledger/boltledger/attention.go",
		old: "if bytes.Compare(next, end) > 0 {", new: "if bytes.Compare(k, end) > 0 {", tests: []string{"-run TestCountAttention " + onDisk},
	},
	{
		name: "CountedAndNeverTakenAway", promise: "I26", file: "internal/ledger/boltledger/groupcommit.go",
		old: "g.changeCount(classCountKey(was), -1)", new: "g.changeCount(classCountKey(was), 0)", tests: []string{"-run TestCountAttention " + onDisk},
	},
	{
		name: "ArchivedTodayReadFromTheEntries", promise: "I21", file: "internal/ledger/boltledger/counts.go",
		old: "if isCounted != isCountedAtEnd || ", new: "if isCounted || isCountedAtEnd || ", tests: []string{"-run TestStatus_G15 vaultd/cmd/vaultd"},
	},
	{
		name: "DamagedFigureEndsCommits", promise: "I23", file: "internal/ledger/boltledger/figures.go",
		old: "\tif !errors.As(err, &broken) {", new: "\tif err != nil || !errors.As(err, &broken) {", tests: []string{"-run TestCommit_I23 " + onDisk},
	},
	{
		name: "CountCutAtZero", promise: "I26", file: "internal/ledger/boltledger/counts.go",
		old: "countForm.encode(&count{lostCount}))", new: "countForm.encode(&count{0}))", tests: []string{"-run TestCommit_I26 " + onDisk},
	},
	{
		name: "DownloadsNotCountedAnew", promise: "I29", file: "internal/ledger/boltledger/figures.go",
		old: "\treturn f, add(further)", new: "\treturn f, nil", tests: []string{"-run TestIntendFetch_I29 " + onDisk},
	},
	{
		name: "MomentsWhileSomebodyWrites", promise: "I25", file: "internal/ledger/boltledger/verify.go",
		old: "\tif l.db.IsReadOnly() { // then", new: "\tif !l.db.IsReadOnly() { // then", tests: []string{"-run TestVerify_I25 " + onDisk},
	},
	{
		name: "MomentEndedOneByOne", promise: "I25", file: "internal/ledger/boltledger/verify.go",
		old: "all.Go(func() { _ = tx.Rollback() })", new: "_ = tx.Rollback()", tests: []string{"-run TestVerifySince_I25 " + onDisk},
	},
	{
		name: "CommitErrorIgnored", promise: "I5", file: "internal/ledger/boltledger/committer.go",
		old: "\tif err := tx.Commit(); err != nil {\n\t\treturn fmt.Errorf(\"commit: %w\", err)\n\t}\n\tif err := l.fault(\"committed\"); err != nil {\n\t\treturn fmt.Errorf(\"commit: %w\", err)\n\t}\n",
		new: "\t_ = tx.Commit()\n\t_ = l.fault(\"committed\")\n", tests: []string{onDisk, worlds},
	},
	{
		name: "AnsweredBeforeTheCommit", promise: "I5", file: "internal/ledger/boltledger/committer.go",
		old: "\tif err := l.fault(\"commit\"); err != nil {\n\t\treturn fmt.Errorf(\"commit: %w\", err)\n\t}\n", new: "\tif err := l.fault(\"commitRequests\"); err != nil {\n\t\treturn nil\n\t}\n",
		tests: []string{onDisk, worlds},
	},
	{
		name: "NoSyncOfCommits", promise: "I5", file: "internal/ledger/boltledger/file.go",
		old: "Timeout: time.Second,", new: "Timeout: time.Second, NoSync: true,", tests: []string{onDisk},
	},
	{
		name: "ChainForgetsItsPast", promise: "I14", file: "internal/ledger/line.go",
		old: "\ts.Write(h.Hash[:])\n", new: "", tests: []string{pure, onDisk, "vaultd/internal/proof"},
	},
	{
		name: "OnlyHalfOfTheJournalProven", promise: "I14", file: "internal/proof/partition.go",
		old: "open = append(open, b, a)\n", new: "open = append(open, b, a)[:len(open)+1]\n", tests: []string{"vaultd/internal/proof"},
	},
	{
		name: "SameNumberMissedAtOnce", promise: "I12", file: "internal/ledger/boltledger/sharednames.go",
		old: "\tif first != after.SameNumber {\n", new: "\tif false {\n", tests: []string{onDisk, "vaultd/internal/ingest"},
	},
	{
		name: "RejectedCountsAsTheFirst", promise: "I12", file: "internal/ledger/boltledger/find.go",
		old: "has.Number == e.Number && !has.IsCertainlyRejected()", new: "has.Number == e.Number", tests: []string{onDisk},
	},
	{
		name: "StrangeDateInNoYear", promise: "I12", file: "internal/report/counts.go",
		old: "\t\treturn t.countRemarksElsewhere(e)\n", new: "\t\treturn nil\n", tests: []string{"vaultd/internal/report"},
	},
	{
		name: "UnusualNumberLookedAtSettlesAll", promise: "I13", file: "internal/ledger/operator.go",
		old: "\t\t\treturn nil // not resolved: a later contradiction", new: "\t\t\t// not resolved: what comes", tests: []string{pure},
	},
	{
		name: "TwoFieldsOfALineSwapped", promise: "I14", file: "internal/ledger/parse.go",
		old: "\t\treturn &l.Other\n", new: "\t\treturn &l.Cause\n", tests: []string{pure},
	},
	{
		name: "ChecksumNotLookedAt", promise: "I14", file: "internal/ledger/boltledger/wire.go",
		old: "if have, want := crc32.Checksum(record[:n], castagnoli), binary.BigEndian.Uint32(record[n:]); have != want {",
		new: "if have, want := crc32.Checksum(record[:n], castagnoli), binary.BigEndian.Uint32(record[n:]); have != want && n == 0 {", tests: []string{onDisk},
	},
	{
		name: "FirstLineBelievedWithoutChecksum", promise: "I14", file: "internal/ledger/boltledger/deflate.go",
		old: "\tbegin, err := blockForm.checkRecord(record)\n", new: "\tbegin, err := record[1:len(record)-4], error(nil)\n", tests: []string{"-run FirstLineOf " + onDisk},
	},
	{
		name: "HeadNotKeptOutside", promise: "I14", file: "internal/ledger/boltledger/committer.go",
		old: "unnoted := l.head.writeRecord(l.end)\n", new: "var unnoted error\n", tests: []string{onDisk},
	},
	{
		name: "RolledBackLedgerAccepted", promise: "I15", file: "internal/ledger/boltledger/inspect.go",
		old: "case outside.N > end.N:", new: "case outside.N > end.N+1<<40:", tests: []string{onDisk},
	},
	{
		name: "DevelopmentFormAccepted", promise: "I28", file: "internal/ledger/boltledger/form.go",
		old: "case digest != f.expectedDigest(schema):", new: "case digest != f.expectedDigest(schema) && schema > 1<<30:", tests: []string{onDisk},
	},
	{
		name: "NewLedgerWhereOneWas", promise: "I15", file: "internal/ledger/boltledger/create.go",
		old: "for _, name := range []string{fileName, headName} {", new: "for _, name := range []string{fileName} {", tests: []string{onDisk},
	},
	{
		name: "BalanceMiscounted", promise: "I1", file: "internal/ledger/boltledger/groupcommit.go",
		old: "g.balance.CountChange(w.stored.State, e.State)", new: "g.balance.CountChange(ledger.None, e.State)", tests: []string{onDisk},
	},
	{
		name: "StaleRevisionAccepted", promise: "I13", file: "internal/ledger/boltledger/groupcommit.go",
		old: "case c.Rev != stored.Rev:", new: "case c.Rev > stored.Rev:", tests: []string{onDisk, worlds},
	},
	{
		name: "DoubtedNamesPassUnseen", promise: "I14", file: "internal/ledger/boltledger/provennames.go",
		old: "return n.sums[g].Load() == 0 && n.doubt[g/32].Load()&(1<<(g%32)) == 0", new: "return n.sums[g].Load() == 0", tests: []string{"-run TestVerify " + onDisk},
	},
	{
		name: "StretchesOfTheChainNotJoined", promise: "I14", file: "internal/ledger/boltledger/verifychain.go",
		old: "if !p.chain.broken && p.chain.before != c.end {", new: "if !p.chain.broken && p.chain.before.N != c.end.N {", tests: []string{"-run TestVerify " + onDisk},
	},
	{
		name: "CheckpointBelievedWithoutItsDigest", promise: "I14", file: "internal/selfcheck/checkpoint.go",
		old: "if err != nil || first != hex.EncodeToString(h.Sum(nil))+\"\\n\" {", new: "if err != nil || first == hex.EncodeToString(nil) {", tests: []string{"vaultd/internal/selfcheck"},
	},
	{
		name: "CheckpointOfAnotherPastAccepted", promise: "I15", file: "internal/ledger/boltledger/verifysince.go",
		old: "if h, err := headAt(tx, v.Head.N); err != nil || h != v.Head {", new: "if h, err := headAt(tx, v.Head.N); err != nil || h.N != v.Head.N {",
		tests: []string{"vaultd/internal/selfcheck"},
	},
	{
		name: "ChangeOfAnEntryAtRestPassedOver", promise: "I14", file: "internal/proof/replay.go",
		old: "\t\tf.since.restChanged = true\n", new: "", tests: []string{"-run TestContinue vaultd/internal/proof"},
	},
	{
		name: "OpenEntriesNotReadAgain", promise: "I14", file: "internal/ledger/boltledger/verifysince.go",
		old: "read(openBucket, nil, checkEntry(openBucket, doneBucket))", new: "read(openBucket, now.changed, checkEntry(openBucket, doneBucket))",
		tests: []string{"vaultd/internal/selfcheck"},
	},
	{
		name: "NameBelievedWithoutItsEntry", promise: "I8", file: "internal/ledger/boltledger/find.go",
		old: "h.generation, ok = bearsName(e, name)", new: "h.generation, ok = e.Generation, true", tests: []string{onDisk},
	},
	{
		name: "NumberForgottenWithItsRegistration", promise: "I8", file: "internal/ledger/boltledger/find.go",
		old: "if err := g.keepPrunedNames(*g.entries[k]); err != nil {", new: "if g.entries[k] == nil {\n\t\t\tvar err error", tests: []string{onDisk},
	},
	{
		name: "AddressComparedWithinOneAnswerOnly", promise: "I8", file: "internal/ledger/boltledger/sharednames.go",
		old: "if identityOf(had, first.generation) != id {", new: "if identityOf(had, first.generation) != id && what != ledger.TakenObject {",
		tests: []string{onDisk, worlds},
	},
	{
		name: "AddressForgottenWithItsRegistration", promise: "I8", file: "internal/ledger/boltledger/find.go",
		old: "\t\tfor _, name := range registrationNames(r) {\n\t\t\tif _, listed", new: "\t\tfor _, name := range registrationNames(r)[:1] {\n\t\t\tif _, listed",
		tests: []string{onDisk},
	},
	{
		name: "AddressForgottenOnceArchived", promise: "I8", file: "internal/ledger/remote.go",
		old: `r.Ticket.URL, r.Ticket.Headers = "", nil`, new: `r.Ticket.URL, r.Ticket.Headers, r.Ticket.Object = "", nil, archive.ObjectDigest{}`,
		tests: []string{onDisk, worlds},
	},
	{
		name: "AddressDigestWithoutKey", promise: "I7", file: "internal/archive/object.go",
		old: "mac := hmac.New(sha256.New, key)", new: "_ = key\n\tmac := hmac.New(sha256.New, nil)", tests: []string{onDisk},
	},
	{
		name: "EarlierHolderFoundFirst", promise: "I2", file: "internal/ledger/boltledger/runs.go",
		old: "bytes.Compare(parts[i][:8], parts[least][:8]) < 0", new: "bytes.Compare(parts[i][:8], parts[least][:8]) <= 0", tests: []string{onDisk},
	},
	{
		name: "LedgerReadableByOthers", promise: "I27", file: "internal/ledger/boltledger/file.go",
		old: "\treturn f.Chmod(0o600)\n", new: "\treturn nil\n", tests: []string{onDisk},
	},
	{
		name: "TwoActors", promise: "I16", file: "internal/statedir/lock.go",
		old: "if errors.Is(err, unix.EWOULDBLOCK) {", new: "if err = nil; errors.Is(err, unix.EWOULDBLOCK) {", tests: []string{"vaultd/internal/daemon", "-run Run_I16 vaultd/cmd/vaultd"},
	},
	{
		name: "ClaimWithoutEntryForgotten", promise: "I1", file: "internal/dropwork/intake.go",
		old: "\t\tif known {\n\t\t\tcontinue\n", new: "\t\tif known || d != nil {\n\t\t\tcontinue\n", tests: []string{"vaultd/internal/daemon", worlds},
	},
	{
		name: "ListBelievedByOurClockAlone", promise: "I15", file: "internal/recovery/vault.go",
		old: "return archive.ReliableElapsed(ours, date.Sub(p.Doubt.Told))", new: "return ours",
		tests: []string{"vaultd/internal/recovery"},
	},
	{
		name: "FirstComparisonBelievesAtOnce", promise: "I15", file: "internal/recovery/vault.go",
		old: "p.Doubt == nil || p.Doubt.Told.IsZero()", new: "p.Doubt == nil", tests: []string{"vaultd/internal/recovery"},
	},
	{
		name: "ListReachesByOurClock", promise: "I15", file: "internal/recovery/vault.go",
		old: "oldest.Before(p.Doubt.From.Add(-before.ahead-margin))", new: "oldest.Before(p.Doubt.From.Add(-margin))",
		tests: []string{"vaultd/internal/recovery"},
	},
	{
		name: "ArchivesTimeNotKept", promise: "I15", file: "internal/operator/reconcile.go",
		old: "ServiceTime: out.Told, ", new: "", tests: []string{"-run Reconcile vaultd/internal/operator", "-run Reconcile vaultd/internal/daemon"},
	},
	{
		name: "SuspectsAreSent", promise: "I15", file: "internal/ledger/transition.go",
		old: "\tcase e.NeedsReconcile:\n", new: "\tcase e.NeedsReconcile && e.State.IsFinal():\n", tests: []string{"-run Due|Transition|StatesPage|Suspect " + pure, onDisk},
	},
	{
		name: "DoubtForgetsTheTicket", promise: "I15", file: "internal/ledger/boltledger/safemode.go",
		old: "s.marking = s.marking || m.marking", new: "s.marking = false", tests: []string{onDisk},
	},
	{
		name: "SafeModeSends", promise: "I15", file: "internal/ingest/engine.go",
		old: "func (c *Engine) isHeld() bool { return c.cfg.IsHeld != nil && c.cfg.IsHeld() }", new: "func (c *Engine) isHeld() bool { return c.cfg.IsHeld == nil }", tests: []string{engine},
	},
}
