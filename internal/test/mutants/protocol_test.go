package mutants

// protocol are mistakes in what follows from what was seen.
var protocol = []mutant{
	{
		name: "BlindReRegistration", promise: "I2", file: "internal/ledger/remote.go",
		old: "\t\te.enterState(Unclear)\n\tdefault:", new: "\t\te.enterState(Packaged)\n\tdefault:", tests: []string{pure, worlds},
	},
	{
		name: "NoGrace", promise: "I2", file: "internal/ledger/ask.go",
		old: "return r.EqualAnswers >= neededAnswers && r.unusedFor(at.Wall, ev.Receipt.Date) >= ev.Grace", new: "return r.EqualAnswers >= neededAnswers",
		tests: []string{pure, worlds},
	},
	{
		name: "OurClockAloneCounts", promise: "I2", file: "internal/ledger/ask.go",
		old: "return archive.ReliableElapsed(ours, date.Sub(r.Ticket.Date.Add(ticketLife)))", new: "return ours", tests: []string{pure, worlds},
	},
	{
		name: "TheirClockAloneCounts", promise: "I2", file: "internal/ledger/ask.go",
		old: "return archive.ReliableElapsed(ours, date.Sub(r.Ticket.Date.Add(ticketLife)))", new: "return date.Sub(r.Ticket.Date.Add(ticketLife))", tests: []string{pure},
	},
	{
		name: "DoubtKeepsTheEvidence", promise: "I2", file: "internal/ledger/reconcile.go",
		old: "r.ClosedAt, r.EqualAnswers = at.Wall, 0", new: "_ = r", tests: []string{pure},
	},
	{
		name: "OneAnswerIsProof", promise: "I2", file: "internal/ledger/ask.go",
		old: "neededAnswers = 3", new: "neededAnswers = 1", tests: []string{pure},
	},
	{
		name: "SilenceIsProof", promise: "I2", file: "internal/ledger/ask.go",
		old: "case ev.Receipt.Status == archive.Absent || !r.isProvenAbsent(at, ev):", new: "case !r.isProvenAbsent(at, ev):",
		tests: []string{pure},
	},
	{
		name: "AbandonedRegistrationFailsItsDocument", promise: "I2", file: "internal/ledger/ask.go",
		old: "return t.IsZero() || !t.Before(r.Ticket.Date.Truncate(time.Second))", new: "return true",
		tests: []string{pure, readings, worlds},
	},
	{
		name: "AcceptedMeansArchived", promise: "I12", file: "internal/ledger/remote.go",
		old:   "\te.enterState(Uploaded)\n\te.UploadedAt = at.Wall\n\te.NotBefore = ev.NotBefore\n",
		new:   "\te.enterState(Archived)\n\te.UploadedAt, e.ArchivedAt, e.ArchivedRemote = at.Wall, at.Wall, e.Current().Ticket.Remote\n",
		tests: []string{pure, worlds},
	},
	{
		name: "InProgressMeansArchived", promise: "I12", file: "internal/vaultapi/status.go",
		old: `"ArchivingInProgress":     archive.InProgress,`, new: `"ArchivingInProgress":     archive.Successful,`,
		tests: []string{speech, worlds},
	},
	{
		name: "UnknownWordMeansArchived", promise: "I12", file: "internal/vaultapi/status.go",
		old:   "func parseStatus(word string) archive.ServiceStatus { return statusWords[word] }",
		new:   "func parseStatus(word string) archive.ServiceStatus {\n\tif w, ok := statusWords[word]; ok {\n\t\treturn w\n\t}\n\treturn archive.Successful\n}",
		tests: []string{speech, readings},
	},
	{
		name: "ContradictionForgotten", promise: "I13", file: "internal/ledger/ask.go",
		old:   "\tif r.Fate == Succeeded {\n\t\te.Contradicted = true\n\t\treturn\n\t}",
		new:   "\tif r.Fate == Succeeded {\n\t\treturn\n\t}",
		tests: []string{pure},
	},
	{
		name: "FailureAfterSuccessRegistersAgain", promise: "I13", file: "internal/ledger/ask.go",
		old:   "\tif r.Fate == Succeeded {\n\t\te.Contradicted = true\n\t\treturn\n\t}",
		new:   "\tif r.Fate == Succeeded {\n\t\tr.Fate = Lapsed\n\t\te.registerAgain(Cause{Code: \"archiving-failed\"})\n\t\treturn\n\t}",
		tests: []string{pure},
	},
	{
		name: "SecondSuccessUnflagged", promise: "I2", file: "internal/ledger/ask.go",
		old: "e.PossibleDouble = e.PossibleDouble || rc.Remote != e.ArchivedRemote", new: "_ = rc", tests: []string{pure, worlds},
	},
	{
		name: "LapsedNeverAskedAgain", promise: "I2", file: "internal/ledger/late.go",
		old:   "\tlast := e.watchedRegistration(i)\n\tif last == nil {\n",
		new:   "\tlast := e.watchedRegistration(i)\n\tif last == nil || e.Registrations[i].Fate == Lapsed {\n",
		tests: []string{pure, worlds},
	},
	{
		name: "RefusedPutForgotten", promise: "I2", file: "internal/ledger/remote.go",
		old: "r.Fate = Declined // that", new: "r.Fate = Unsent // that", tests: []string{pure, worlds},
	},
	{
		name: "SecondSuccessNotFlagged", promise: "I2", file: "internal/ledger/late.go",
		old: "return e.countSuccesses() > 1 }", new: "return e.countSuccesses() > 1 && e.NeedsReconcile }", tests: []string{pure, worlds},
	},
	{
		name: "UnflaggedSecondSuccessPassesTheCheck", promise: "I2", file: "internal/proof/replay.go",
		old: "&& !l.flags.double {\n\t\tf.addFinding(\"I2\"", new: "&& false {\n\t\tf.addFinding(\"I2\"",
		tests: []string{"vaultd/internal/proof"},
	},
	{
		name: "FailureBelievedOnOneWord", promise: "I2", file: "internal/ledger/late.go",
		old: "return !r.LastAnswer.After(r.ClosedAt) || r.LastStatus == archive.Unfamiliar", new: "return false", tests: []string{pure, worlds},
	},
	{
		name: "ProgressOfAGivenUpOneNotWaitedFor", promise: "I2", file: "internal/ledger/ask.go",
		old: "case unawaited && (e.State == Packaged || e.State == Registered):", new: "case false:", tests: []string{pure},
	},
	{
		name: "RefusalAfterUnansweredPutIsCertain", promise: "I2", file: "internal/ledger/remote.go",
		old:   "func (ev UploadRefused) apply(e *Entry, at archive.Instant) error {\n\tif err := e.requireState(Sending); err != nil {\n\t\treturn err\n\t}\n\tif r := e.Current(); r.countWithoutEffect() {",
		new:   "func (ev UploadRefused) apply(e *Entry, at archive.Instant) error {\n\tif err := e.requireState(Sending); err != nil {\n\t\treturn err\n\t}\n\tif r := e.Current(); r.countWithoutEffect() || true {",
		tests: []string{pure, worlds},
	},
	{
		name: "RefusalOfARepeatedRegistrationRejects", promise: "I24", file: "internal/ledger/remote.go",
		old: "if taken || e.Posts-e.Answers > e.LostAnswers {", new: "if false && taken {", tests: []string{pure, readings},
	},
	{
		name: "UnansweredPostCountsAsAnswered", promise: "I9", file: "internal/ledger/remote.go",
		old:   "func (ev RegisterUnanswered) apply(e *Entry, _ archive.Instant) error {\n\tif err := e.requireState(Registering); err != nil {\n\t\treturn err\n\t}\n",
		new:   "func (ev RegisterUnanswered) apply(e *Entry, _ archive.Instant) error {\n\tif err := e.requireState(Registering); err != nil {\n\t\treturn err\n\t}\n\te.Answers++\n",
		tests: []string{pure, worlds},
	},
	{
		name: "AddressInTheJournal", promise: "I7", file: "internal/ledger/line.go",
		old: "\t\tl.Remote = string(ev.Ticket.Remote)\n", new: "\t\tl.Remote = string(ev.Ticket.URL)\n", tests: []string{pure, onDisk},
	},
	{
		name: "HeldGoesOn", promise: "I29", file: "internal/ledger/transition.go",
		old: "\tcase e.Hold:\n", new: "\tcase e.Hold && e.NeedsReconcile:\n", tests: []string{pure},
	},
	{
		name: "HumanActWithoutName", promise: "I29", file: "internal/ledger/line.go",
		old: "\tl.UID = uidPointer(by.UID)\n", new: "", tests: []string{pure, onDisk},
	},
	{
		name: "GenerationBeforeAnyDoubt", promise: "I10", file: "internal/ledger/remote.go",
		old:   "\te.State = Registering\n\te.Posts++\n",
		new:   "\te.State = Registering\n\tif e.Posts++; e.Posts > 1 {\n\t\te.Generation++\n\t\te.ID = e.FirstID.Generation(int(e.Generation))\n\t}\n",
		tests: []string{pure, worlds},
	},
}
