package mutants

// notices are mistakes about what the business network tells, and about numbers that it knows.
var notices = []mutant{
	{
		name: "NoticeKnownNumberIsAlwaysASuccess", promise: "I8", file: "internal/ledger/network.go",
		old: "r.UploadIntents == 0 || ev.WasKnown && !r.hasEarlierUnanswered()", new: "r.UploadIntents == 0", tests: []string{"-run DocumentTaken_I2 " + pure},
	},
	{
		name: "DoubtWaitsForTheLongPause", promise: "I25", file: "internal/notices/poller.go",
		old: "pause = p.cfg.Every // a document", new: "pause += 0 // a document", tests: []string{"-run Poll_TheSecondLook vaultd/internal/receive"},
	},
	{
		name: "WhatFailedComesFirst", promise: "I25", file: "internal/ledger/arrival/due.go",
		old: "return cmp.Compare(a.Attempt, b.Attempt)", new: "return cmp.Compare(b.Attempt, a.Attempt)", tests: []string{"-run Intake_I25 vaultd/internal/intake", "-run Run_I25 vaultd/internal/receive"},
	},
	{
		name: "NoticeAcknowledgedBeforeItsCommit", promise: "I30", file: "internal/notices/poller.go",
		old:   "\t\tours[key] = append(ours[key], n)\n",
		new:   "\t\tours[key] = append(ours[key], n)\n\t\tif err := p.cfg.Service.Acknowledge(ctx, n.AcknowledgementID); err != nil {\n\t\t\treturn nil, err\n\t\t}\n",
		tests: []string{"-run TestNetwork_I2_FaultAtEvery " + worlds},
	},
	{
		name: "NoticeOfOthersAcknowledged", promise: "I30", file: "internal/notices/received.go",
		old: "\t\t\tforeign = append(foreign, n)\n", new: "\t\t\tdone, foreign = append(done, n.AcknowledgementID), append(foreign, n)\n", tests: []string{"-run NoticesOfOthersStay " + readings},
	},
	{
		name: "NoticeThatSaysSomethingElseAcknowledged", promise: "I12", file: "internal/notices/received.go",
		old: "\t\tcase !p.saysWhatWasKept(n, had):\n\t\t\tl.other++ // nobody", new: "\t\tcase false:\n\t\t\tl.other++ // nobody", tests: []string{"-run NoticeThatSaysSomethingElse " + readings},
	},
	{
		name: "NoticesBehindABacklogUnheard", promise: "I12", file: "internal/networkapi/notifications.go",
		old: "\t\tl.collected += len(n.Raw)\n\t}\n\treturn isNew, err\n", new: "\t\tl.collected += len(n.Raw)\n\t}\n\tfor _, n := range fresh {\n\t\tl.collected += len(n.Raw)\n\t}\n\treturn isNew, err\n", tests: []string{noticeTests},
	},
	{
		name: "PackageGoneCountsAsAnAttempt", promise: "I8", file: "internal/ingest/send.go",
		old: "notSent(e, c.cfg.Now().Wall, ledger.Cause{Code: \"package-missing\", Text: err.Error()})", new: "ledger.UploadUnanswered{NotBefore: c.cfg.Now().Wall, Cause: ledger.Cause{Code: \"package-missing\", Text: err.Error()}}", tests: []string{"-run NetworkPackageGoneBeforeItsPOST " + readings},
	},
	{
		name: "NoticeOfALateRejectIgnored", promise: "I13", file: "internal/ledger/network.go",
		old: "\t\te.Contradicted = true\n\t\tif !e.SourceDiffers() {", new: "\t\tif !e.SourceDiffers() {", tests: []string{"-run NotificationSeen_I13|NoticesLostAndRepeated " + pure},
	},
	{
		name: "NoticeOfAnUnknownPairIsAWord", promise: "I12", file: "internal/ledger/network.go",
		old: "\tcase archive.MeansProcessing:\n", new: "\tcase archive.MeansUnfamiliar:\n\t\te.hearDelivered(r, n, at)\n\tcase archive.MeansProcessing:\n",
		tests: []string{"-run NoticesLostAndRepeated " + pure},
	},
	{
		name: "LateRejectKeepsTheFolderFromItsPlace", promise: "I25", file: "internal/proof/delivery.go",
		old: "r.Fate != ledger.Succeeded && !e.IsUndelivered()", new: "r.Fate != ledger.Succeeded", tests: []string{"-run TestMover_I25 vaultd/internal/dropwork"},
	},
	{
		name: "UnsentDocumentWithoutEffect", promise: "I9", file: "internal/ledger/remote.go",
		old: "if e.Route.IsNotified() && e.sentAs() == nil { // a file", new: "if false { // a file", tests: []string{"-run NoticesLostAndRepeated " + pure},
	},
	{
		name: "UndeliveredNumberUsedAgain", promise: "I2", file: "internal/ingest/seal.go",
		old: "verdict == ledger.Proceed && len(holder.Registrations) == 0:", new: "verdict == ledger.Proceed:", tests: []string{"-run NetworkFolderDroppedAgain " + readings},
	},
	{
		name: "PlacedWithoutItsCopy", promise: "I1", file: "internal/ingest/place.go",
		old: "if c.isToBeCopied(e) {", new: "if c.isToBeCopied(e) && e.Attempt == 0 {", tests: []string{"-run CopyWaitsForItsDropFolder " + readings},
	},
	{
		name: "ReasonLostToWhatIsInTheWay", promise: "I11", file: "internal/ledger/intake.go",
		old: "step == Place && (e.State == Rejected || e.Contradicted)", new: "step == Place && e.Contradicted", tests: []string{"-run ReasonOutlives " + readings},
	},
	{
		name: "ValidationFileOfBeforeStays", promise: "I4", file: "internal/dropwork/notes.go",
		old: "if e.Route.IsNotified() && e.Validation", new: "if false && e.Validation", tests: []string{"-run ValidationFileOfBefore " + readings},
	},
	{
		name: "FileOfAPersonTakenForThatOfACheck", promise: "I1", file: "internal/dropwork/notes.go",
		old: "if e.Route.IsNotified() && e.Validation", new: "if e.Validation", tests: []string{"-run FileNamedLikeThatOfACheck " + readings},
	},
	{
		name: "FileOfACheckIsSent", promise: "I4", file: "internal/packager/list.go",
		old: "\"_validation.xml\", \"_validation.pdf\", \"_validation.txt\"", new: "\"_validation\"", tests: []string{"-run ValidationFileOfBefore " + readings},
	},
	{
		name: "ValidationFileKeepsTheFolderForEver", promise: "I11", file: "internal/ingest/validation.go",
		old: "isOver := isRefused || isLate", new: "isOver := isRefused || false && isLate", tests: []string{"-run ValidationFileThatDoesNotCome " + readings},
	},
	{
		name: "ValidationFileTriedOnce", promise: "I11", file: "internal/ingest/validation.go",
		old: "isLate && e.Attempt >= validationTries-1", new: "isLate || e.Attempt >= 0", tests: []string{"-run ValidationFileThatDoesNotCome " + readings},
	},
	{
		name: "CopyOfEachAttemptIsAnotherDocument", promise: "I2", file: "internal/ingest/sentcopy.go",
		old: "archive.DeriveSentID(e.NetworkNumber())", new: "archive.DeriveSentID(archive.RemoteID(c.cfg.Now().Wall.String()))", tests: []string{"-run TestCopies_I1 " + worlds},
	},
	{
		name: "CopyIsCommittedBeforeItIsMade", promise: "I1", file: "internal/ingest/place.go",
		old: "\t\tif err := c.putCopy(ctx, d, e, doc); err != nil {\n\t\t\treturn c.postponeCopy(ctx, e, err)\n\t\t}\n", new: "\t\t_ = c.putCopy(ctx, d, e, doc)\n", tests: []string{"-run CopyWaitsForItsDropFolder " + readings},
	},
	{
		name: "CopyOfADamagedPackage", promise: "I4", file: "internal/dropwork/packer.go",
		old: "if err == nil && !whole {\n\t\tp.shared.Log.Error(\"a package in the spool is no longer", new: "if err == nil && !whole && false {\n\t\tp.shared.Log.Error(\"a package in the spool is no longer", tests: []string{"-run CopyOfALostPackage " + readings},
	},
	{
		name: "CopyOfAChangedFolder", promise: "I4", file: "internal/ingest/sentcopy.go",
		old: "packed.Sealed.Content != e.Content || packed.Sealed.Metadata != e.Metadata", new: "false", tests: []string{"-run CopyOfALostPackage " + readings},
	},
	{
		name: "NetworkErrorDocumentIsASuccess", promise: "I12", file: "internal/networkapi/send.go",
		old: `[]byte("<"))`, new: `[]byte("<nothing"))`, tests: []string{sendTests},
	},
}
