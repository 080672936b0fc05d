package dropwork

import (
	"context"
	"os"

	"vaultd/internal/archive"
	"vaultd/internal/drop"
	"vaultd/internal/durable"
	"vaultd/internal/ingest"
	"vaultd/internal/ledger"
	"vaultd/internal/packager"
	"vaultd/internal/spool"
	"vaultd/internal/watch"
)

// form is how what is dropped is read: a type with a method for each question.
// The route of the drop tells which form it has.
type form interface {
	// takesFiles reports whether single files are taken, and not folders.
	takesFiles() bool
	// keeps is the kind of what is done with.
	keeps() drop.Kind
	// findFault returns what is wrong with the rules of a drop; empty: nothing.
	findFault(s Settings) string
	// sidecar is the name that makes a folder a document; empty: none does.
	sidecar(s Settings) string
	// isJunk reports whether a name is left alone wherever it lies.
	isJunk(name string) bool
	// watch fits how a drop is watched.
	watch(d *Drop, cfg *watch.Config)
	// claim claims a settled thing and asks for its entry.
	claim(ctx context.Context, d *Drop, f *drop.Folder, w watch.Item) error
	// findMissing names the files of its list that a folder lacks.
	findMissing(s Settings, folder *os.Root) ([]string, error)
	// readTraces reads by what a folder of a drop is recognised.
	readTraces(ctx context.Context, s Settings, root *os.Root) (packager.Traces, error)
	// build packs what was claimed for e.
	build(ctx context.Context, s Settings, e ledger.Entry, root *os.Root, to *durable.Dir) (packager.Sealed, error)
	// fit sets what the engine asks for.
	fit(s Settings, e *ingest.Drop)
}

var forms = [...]form{ledger.Folders: folders{}, ledger.Files: singlePDFs{}, ledger.Documents: documents{}}

// formOf returns the form of what goes by a route.
func formOf(r ledger.Route) form { return forms[r.Form()] }

// form returns the form of what is dropped here.
func (s Settings) form() form { return formOf(s.Route) }

// folders are folders with a sidecar of the archive.
type folders struct{}

func (folders) takesFiles() bool { return false }

func (folders) keeps() drop.Kind { return drop.Archived }

func (folders) findFault(s Settings) string { return firstFault(s.Rules.FindFaults()) }

func (folders) sidecar(s Settings) string { return s.Rules.Sidecar }

func (folders) isJunk(name string) bool { return packager.IsJunkName(name) }

func (folders) watch(*Drop, *watch.Config) {}

func (folders) claim(ctx context.Context, d *Drop, f *drop.Folder, w watch.Item) error {
	return d.claimFolder(ctx, f, w)
}

func (folders) findMissing(s Settings, folder *os.Root) ([]string, error) {
	return packager.FindMissingFiles(folder, s.Rules)
}

func (folders) readTraces(ctx context.Context, s Settings, root *os.Root) (packager.Traces, error) {
	return packager.ReadTraces(ctx, root, s.Rules)
}

func (folders) build(ctx context.Context, s Settings, e ledger.Entry, root *os.Root, to *durable.Dir) (packager.Sealed, error) {
	return packager.BuildPackage(ctx, root, s.Rules, to, spool.PackageName(e.Route, e.Key))
}

func (folders) fit(Settings, *ingest.Drop) {}

// documents are folders with a document of the business network.
type documents struct{ folders }

func (documents) keeps() drop.Kind { return drop.Delivered }

func (documents) findFault(s Settings) string { return firstFault(s.networkRules().FindFaults()) }

func (documents) isJunk(name string) bool { return packager.IsJunkName(name) || drop.IsNoteName(name) }

func (documents) findMissing(s Settings, folder *os.Root) ([]string, error) {
	return packager.FindMissingNetworkFiles(folder, s.networkRules())
}

func (documents) readTraces(ctx context.Context, s Settings, root *os.Root) (packager.Traces, error) {
	return packager.ReadNetworkTraces(ctx, root, s.networkRules())
}

func (documents) build(ctx context.Context, s Settings, e ledger.Entry, root *os.Root, to *durable.Dir) (packager.Sealed, error) {
	rules := s.networkRules()
	rules.Folder = e.Folder
	if e.WasSealed() {
		// Its document says since then what its files are, and its digest is
		// judged, whatever a document may hold today.
		rules.TypeFiles, rules.Check = nil, func([]byte) []packager.DocumentFault { return nil }
	}
	return packager.BuildNetwork(ctx, root, rules, to, spool.PackageName(e.Route, e.Key))
}

// singlePDFs are files without a folder around them.
type singlePDFs struct{ folders }

func (singlePDFs) takesFiles() bool { return true }

func (singlePDFs) keeps() drop.Kind { return drop.Delivered }

func (singlePDFs) findFault(s Settings) string {
	if s.Receiving == "" || s.Notify == "" {
		return "receiving or notify is missing"
	}
	return ""
}

func (singlePDFs) sidecar(Settings) string { return "" }

func (singlePDFs) isJunk(name string) bool { return packager.IsJunkName(name) || drop.IsNoteName(name) }

func (singlePDFs) watch(d *Drop, cfg *watch.Config) {
	cfg.Kind, cfg.Complete, cfg.IsComplete = watch.Files, watch.Quiet, d.isPDFComplete
}

func (singlePDFs) claim(ctx context.Context, d *Drop, f *drop.Folder, w watch.Item) error {
	return d.claimFile(ctx, f, w)
}

func (singlePDFs) readTraces(ctx context.Context, s Settings, root *os.Root) (packager.Traces, error) {
	return packager.ReadPDFTraces(ctx, root, s.pdfRules())
}

func (singlePDFs) build(ctx context.Context, s Settings, e ledger.Entry, root *os.Root, to *durable.Dir) (packager.Sealed, error) {
	return packager.BuildPDF(ctx, root, s.pdfRules(), to, spool.PackageName(e.Route, e.Key))
}

func (singlePDFs) fit(s Settings, e *ingest.Drop) {
	e.SendsAgain, e.Request = s.SendsSamePDF, archive.PDFRequest{Receiving: s.Receiving, Notify: s.Notify}.Encode()
}

// firstFault returns the first of faults in words; empty: there is none.
func firstFault(faults []archive.Fault) string {
	if len(faults) == 0 {
		return ""
	}
	return faults[0].Field + " " + faults[0].Text
}
