package mutants

const onPages = "vaultd/internal/page"

// page are mistakes in what a visitor of the pages is told and may do.
var page = []mutant{
	{
		name: "PageDocumentWithoutRead", promise: "I7", file: "internal/page/page.go",
		old: "\t\tif !f.Visitor.Rights.Read {\n\t\t\treturn &Refusal", new: "\t\tif false {\n\t\t\treturn &Refusal", tests: []string{"-run NothingIsTold " + onPages},
	},
	{
		name: "PageStatusNamesDocuments", promise: "I7", file: "internal/page/status.go",
		old: "if !f.Visitor.Rights.Read {\n\t\ts = withoutDocuments(s)", new: "if false {\n\t\ts = withoutDocuments(s)", tests: []string{"-run NothingIsTold " + onPages},
	},
	{
		name: "PageReceiptWithoutRead", promise: "I7", file: "internal/page/page.go",
		old: "p.handle(p.readersOnly(p.sendReceipt))", new: "p.handle(p.sendReceipt)", tests: []string{"-run NothingIsTold " + onPages},
	},
	{
		name: "PageDownloadWithoutFetch", promise: "I7", file: "internal/page/document.go",
		old: "if !f.Visitor.Rights.Fetch {", new: "if false {", tests: []string{"-run NothingIsTold " + onPages},
	},
	{
		name: "PageDownloadWithoutItsUser", promise: "I29", file: "cmd/vaultd/pages.go",
		old: "Reason: \"on the pages, by the user \" + user}", new: "Reason: \"\"}\n\t_ = user", tests: []string{"-run TestPages_FindShowDownloadReport vaultd/cmd/vaultd"},
	},
	{
		name: "PageDownloadWithoutJournal", promise: "I29", file: "cmd/vaultd/pages.go",
		old:   "got, err := a.downloadTo(ctx, v, service, archivedDownload(e), by, tmp)",
		new:   "got, err := comparedFile{}, error(nil)\n\tif got.size, _, err = service.Download(ctx, e.Vault, e.ArchivedRemote, tmp); by.Reason == \"\" {\n\t\tpanic(by)\n\t}",
		tests: []string{"-run TestPages_FindShowDownloadReport vaultd/cmd/vaultd"},
	},
	{
		name: "PageTranslatesNamesOfTheSidecar", promise: "I7", file: "internal/page/templates/document.html",
		old: "<dt><bdi>{{.Name}}</bdi></dt>", new: "<dt><bdi>{{$.T .Name}}</bdi></dt>", tests: []string{"-run NamesOfTheSidecar " + onPages},
	},
	{
		name: "PageBooksWithoutRead", promise: "I7", file: "internal/page/books.go",
		old: "\treturn p.readersOnly(func(w http.ResponseWriter, r *http.Request, f *frame) error {\n\t\tif f.about.Books", new: "\treturn action(func(w http.ResponseWriter, r *http.Request, f *frame) error {\n\t\tif f.about.Books",
		tests: []string{"-run NothingIsTold " + onPages},
	},
	{
		name: "PageBooksUnknownResultLooksGood", promise: "I31", file: "internal/page/books.go",
		old: "\t\treturn \"calm\"\n\t}\n\treturn \"bad\"", new: "\t\treturn \"calm\"\n\t}\n\treturn \"good\"", tests: []string{"-run TestBooks_I31 " + onPages},
	},
	{
		name: "BooksTwoAnswersAtOnce", promise: "I21", file: "cmd/vaultd/books.go",
		old: "\tcase v.booksTurn <- struct{}{}:\n\t\treturn func() { <-v.booksTurn }, nil\n", new: "\tcase v.booksTurn <- struct{}{}:\n\t\t<-v.booksTurn\n\t\treturn func() {}, nil\n",
		tests: []string{"-run TestBooks_I21 vaultd/cmd/vaultd"},
	},
	{
		name: "PageInWorkOutlivesServe", promise: "I1", file: "internal/web/server.go",
		old: "\tinWork.Lock() //", new: "\t//", tests: []string{"-run ReturnsAfterThePages vaultd/internal/web"},
	},
}
