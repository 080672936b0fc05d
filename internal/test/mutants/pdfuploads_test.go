package mutants

// pdfUploads are mistakes about an upload of which nobody can be asked what became.
var pdfUploads = []mutant{
	{
		name: "ContentLeavesAfterTheAnswer", promise: "I2", file: "internal/apicall/gate.go",
		old: "g.set(func() { g.answered = true })", new: "g.set(func() {})", tests: []string{"-run TestPut_I2 " + calls},
	},
	{
		name: "ContentThatLeftCountsAsKeptBack", promise: "I2", file: "internal/apicall/gate.go",
		old: "g.kept = !g.passed", new: "g.kept = true", tests: []string{"-run TestPut_I2 " + calls},
	},
	{
		name: "ContentOfAnEarlierHopForgotten", promise: "I2", file: "internal/apicall/call.go",
		old: "\t\tc.begun = true\n", new: "\t\tc.begun = len(c.url.Path) == 0\n", tests: []string{"-run TestPut_I2 " + calls},
	},
	{
		name: "YesBeforeThePDFIsANo", promise: "I2", file: "internal/apicall/errors.go",
		old: "case e.keptBack && e.Status/100 != 2:", new: "case e.keptBack:", tests: []string{"-run TestPut_I2 " + calls},
	},
	{
		name: "PDFUploadDoesNotAskFirst", promise: "I2", file: "internal/pdfapi/pdfapi.go",
		old: "AsksFirst: true", new: "AsksFirst: false", tests: []string{"-run PDFUploadFailsBefore " + readings},
	},
	{
		name: "DoubtPausesLikeAnotherFault", promise: "I2", file: "internal/ingest/breaker.go",
		old: "now.Add(doubtPause(inARow))", new: "now.Add(firstPause)", tests: []string{"-run TestPDF_I2 " + engine},
	},
	{
		name: "DoubtCallsNobody", promise: "I26", file: "internal/ingest/breaker.go",
		old: "if inARow >= tolerated {\n\t\tc =", new: "if inARow >= 1000*tolerated {\n\t\tc =", tests: []string{"-run TestPDF_I2 " + engine},
	},
	{
		name: "RefusalEndsTheRowOfDoubts", promise: "I2", file: "internal/ingest/breaker.go",
		old: "\tawaitsPerson := br.Cause.Code", new: "\tdelete(b.doubts, t)\n\tawaitsPerson := br.Cause.Code", tests: []string{"-run TestPDF_I2 " + engine},
	},
	{
		name: "StopCutsOffPDFs", promise: "I2", file: "internal/ingest/engine.go",
		old: "if c.routeOf(e).Asker != nil {", new: "if c.routeOf(e).Workers > 0 {", tests: []string{"-run TestPDF_I2_Stop " + engine},
	},
	{
		name: "StopWaitsForPDFsForEver", promise: "I25", file: "internal/ingest/engine.go",
		old: "time.AfterFunc(unaskedGrace, endUnasked)", new: "time.AfterFunc(100*unaskedGrace, endUnasked)", tests: []string{"-run TestPDF_I2_Stop " + engine},
	},
	{
		name: "PDFsBeginWhileAReloadWaits", promise: "I2", file: "internal/ingest/engine.go",
		old: "return c.draining.Load() && s == ledger.Upload", new: "return c.draining.Load() && s != ledger.Upload", tests: []string{"-run TestPDF_I2_Reload " + engine},
	},
	{
		name: "SentAgainAfterADoubtWithoutAFlag", promise: "I2", file: "internal/operator/actions.go",
		old: "ev.PossibleDouble = old.IsSentAgainInDoubt()", new: "ev.PossibleDouble = old.IsSentAgainInDoubt() && old.Route.IsAsked()", tests: []string{"-run PDFClosedByMistake " + readings},
	},
	{
		name: "ClosedInDoubtIsSentWithoutADecision", promise: "I2", file: "internal/ingest/seal.go",
		old: "return e.DuplicateConfirmed && first", new: "return first", tests: []string{"-run PDFClosedByMistake " + readings},
	},
	{
		name: "PDFOfUnknownFateIsRegisteredAgain", promise: "I2", file: "internal/ledger/remote.go",
		old: "\t\te.enterQuarantine(DeliveryUnknown(e.Route, \"the time of the upload address is over, an upload to it was never answered\"))\n",
		new: "\t\te.enterState(Packaged)\n", tests: []string{"-run TestTransition_EveryEventInEveryState " + pure},
	},
}
