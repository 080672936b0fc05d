package packager

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"path"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"vaultd/internal/archive"
	"vaultd/internal/durable"
)

// NetworkRules is what a drop of the business network asks of its folders. What a document may hold is known to the client of the network, which
// this package does not import: Check, Read and CheckFileName are its own, and all three are needed.
type NetworkRules struct {
	Rules // Sidecar is the name of the document, empty: document.json. Vault, Defaults, Require and IncludeSidecar do not count.

	Check         func(document []byte) []DocumentFault           // everything that is wrong with a document
	Read          func(document []byte) (archive.Document, error) // what a document says, of one that Check finds no fault with
	CheckFileName func(name string) (text string, ok bool)        // ok: the network takes files of that name; else text says which it takes
	MaxDocument   int64                                           // bytes of a document; 0: 8 MiB

	// TypeFiles says what each file is to a document that lies in a folder of
	// that name; nil: that is not decided here.
	TypeFiles func(document []byte, folder string, names []string) ([]archive.FileType, []DocumentFault)
	Folder    string // the name of the folder, as it was dropped
}

// DocumentFault is one thing wrong with a document, in words for the person who made it.
type DocumentFault struct {
	Line  int    // counted from 1; 0: it is about the files of the folder
	Field string // where it stands; empty: the whole file
	Text  string // what is wrong, and behind the last "; " what would be right: "is missing; write the name of the party."
}

const (
	defaultDocumentName = "document.json"
	defaultMaxDocument  = 8 << 20
)

// BuildNetwork checks the claimed folder at root and seals its document and its files as the ZIP name in spool, as [BuildPackage] does. The
// document is the first entry of the ZIP, and the others follow in the order in which they are sent.
//
// All files lie directly in the folder: the network knows files by their names alone, so a folder in it that holds files is refused. A document
// may have no files.
//
// Its errors are those of BuildPackage. The same folder under the same rules gives the same result.
func BuildNetwork(ctx context.Context, root *os.Root, rules NetworkRules, spool *durable.Dir, name string) (Sealed, error) {
	n, err := readNetworkFolder(ctx, root, rules)
	if err != nil {
		return Sealed{}, err
	}
	return n.seal(ctx, spool, name, n.describe)
}

// ValidateNetwork is [ValidateFolder] for a folder of the business network.
func ValidateNetwork(ctx context.Context, root *os.Root, rules NetworkRules) (Sealed, error) {
	return BuildNetwork(ctx, root, rules, nil, "")
}

// FindMissingNetworkFiles is [FindMissingFiles] for a folder of the business network. Under list the manifest names its files.
func FindMissingNetworkFiles(root *os.Root, rules NetworkRules) (missing []string, err error) {
	if rules, err = rules.validated(); err != nil {
		return nil, err
	}
	return findMissingFiles(root, rules.Rules)
}

// FindFaults returns what is wrong with the rules themselves, for the check of a configuration.
func (r NetworkRules) FindFaults() []archive.Fault {
	r = r.withDefaults()
	var faults []archive.Fault
	if r.Check == nil || r.Read == nil || r.CheckFileName == nil {
		faults = append(faults, archive.Fault{Field: "route", Text: "has no check of what the business network takes"})
	}
	return append(faults, r.findFolderFaults()...)
}

func (r NetworkRules) withDefaults() NetworkRules {
	r.Sidecar = cmp.Or(r.Sidecar, defaultDocumentName)
	r.Rules = r.Rules.withDefaults()
	r.Rules.isNetwork, r.Rules.IncludeSidecar = true, false
	r.MaxDocument = cmp.Or(r.MaxDocument, defaultMaxDocument)
	return r
}

// validated returns the rules with their defaults. An error means that the configuration or the program is wrong; no folder is refused for it.
func (r NetworkRules) validated() (NetworkRules, error) {
	if faults := r.FindFaults(); len(faults) > 0 {
		return r, fmt.Errorf("use packaging rules: %s %s", faults[0].Field, faults[0].Text)
	}
	return r.withDefaults(), nil
}

// networkFolder is a dropped folder for the business network after its names and its document were read, and before its files are.
type networkFolder struct {
	*droppedFolder
	rules    NetworkRules
	document archive.Document // what the document says
	source   []byte           // its bytes; nil: it cannot be read
	types    map[string]archive.FileType
}

// readNetworkFolder reads the names, the document and the lists of a folder, and refuses it for all that is wrong with them.
func readNetworkFolder(ctx context.Context, root *os.Root, rules NetworkRules) (*networkFolder, error) {
	rules, err := rules.validated()
	if err != nil {
		return nil, err
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	l, err := listFolder(root, rules.Rules)
	if err != nil {
		return nil, err
	}
	n := &networkFolder{droppedFolder: &droppedFolder{listing: l, form: newSidecarReader(rules.Sidecar)}, rules: rules}
	if err := n.readDocument(); err != nil {
		return nil, err
	}
	manifest, err := n.readManifestAndMarker()
	if err != nil {
		return nil, err
	}
	n.faults = append(n.faults, l.faults...)
	if !l.isTooMany { // else most of the files were not read
		n.checkDocumentPresence()
		n.checkFiles()
		n.typeFiles()
		n.checkLists(manifest)
	}
	l.includeSidecar()
	n.droppedFolder, err = n.checkedFolder()
	return n, err
}

// readDocument reads and checks the document.
func (n *networkFolder) readDocument() error {
	src, err := n.readFileUpTo(n.rules.MaxDocument, n.sidecar, "a document")
	if err != nil || src == nil {
		return err
	}
	n.checkedDocument = archive.Sum(src)
	name := n.sidecar.path
	if text, advice := describeUnreadable(src); text != "" {
		if !strings.Contains(text, "UTF-16") { // whose advice is good for any file
			advice = "Export it again, as plain JSON"
		}
		n.faults = append(n.faults, Fault{File: name, Brief: n.rules.Sidecar + " unreadable", Text: text, Advice: advice})
		return nil
	}
	n.source = src
	found := n.rules.Check(src)
	for _, f := range found {
		n.faults = append(n.faults, n.faultOf(name, f))
	}
	if n.document, err = n.rules.Read(src); err != nil && len(found) == 0 {
		n.faults = append(n.faults, Fault{File: name, Brief: n.rules.Sidecar + " unreadable", Text: "cannot be read: " + err.Error(), Advice: "Export it again"})
	}
	n.form.asRead = asReadOf(n.document)
	return nil
}

// faultOf words a fault of the document called name.
func (n *networkFolder) faultOf(name string, f DocumentFault) Fault {
	x := Fault{File: name, Line: f.Line, Field: f.Field, Brief: n.rules.Sidecar + " not accepted", Text: strings.TrimSuffix(f.Text, "."), Advice: "Put it right"}
	switch {
	case f.Line == 0:
		x.File, x.Brief = "", "which PDF is the picture is not known"
	case f.Field == "":
		x.Brief = n.rules.Sidecar + " unreadable"
	}
	at := strings.LastIndex(x.Text, "; ")
	if at < 0 {
		return x
	}
	// What stands behind the last semicolon is an advice where it begins with what to do.
	advice := x.Text[at+2:]
	if verb, _, _ := strings.Cut(advice, " "); slices.Contains([]string{"write", "delete", "save", "close", "complete", "export", "look", "make", "put"}, verb) {
		first, size := utf8.DecodeRuneInString(advice)
		x.Text, x.Advice = x.Text[:at], string(unicode.ToUpper(first))+advice[size:]
	}
	return x
}

// asReadOf is what people find a refused folder by.
func asReadOf(d archive.Document) archive.AsRead {
	ids := func(all []string) string {
		if s := strings.Join(all, ", "); len(s) <= archive.MaxAsRead {
			return s
		}
		return ""
	}
	return archive.AsRead{Type: d.Type, Number: d.Number, Date: d.Date, SenderName: d.SenderName, SenderIDs: ids(d.SenderIDs),
		RecipientName: d.RecipientName, RecipientIDs: ids(d.RecipientIDs), Amount: string(d.Amount), Currency: d.Currency}
}

// checkDocumentPresence refuses a folder without a document.
func (n *networkFolder) checkDocumentPresence() {
	name := n.rules.Sidecar
	if n.sidecar != nil || slices.ContainsFunc(n.listing.faults, func(f Fault) bool { return strings.EqualFold(f.File, name) }) {
		return // it is there, and may have a fault already
	}
	x := Fault{Brief: "no " + name, Text: "The folder has no " + name, Advice: "Put it into the folder"}
	near := slices.IndexFunc(n.files, func(f foundFile) bool { return nearSidecar(f.path, name) })
	switch {
	case near >= 0:
		x.Text, x.Advice = fmt.Sprintf("The folder has %s in place of %s", showName(n.files[near].path), name), fmt.Sprintf("Rename it to %s (Explorer: View > File name extensions)", name)
	case len(n.allFiles()) == 0 && len(n.listing.faults) == 0:
		x.Brief, x.Text, x.Advice = "empty folder", "The folder is empty", fmt.Sprintf("Put %s and the files of the invoice into it", name)
	}
	n.faults = append(n.faults, x)
}

// checkFiles refuses files that the network does not take.
func (n *networkFolder) checkFiles() {
	named := map[string]bool{} // folders that were told of
	for _, f := range n.files {
		top, _, inFolder := strings.Cut(f.disk, "/")
		if inFolder && !named[top] {
			named[top] = true
			n.faults = append(n.faults, Fault{File: top, Brief: "files in a folder of the folder", Text: "is a folder with files in it, and the network knows no folders", Advice: "Move its files up"})
		}
		if f.state.Size == 0 {
			n.faults = append(n.faults, Fault{File: f.disk, Brief: "empty file", Text: "is empty: it has 0 bytes", Advice: "Copy it again, or take it out of the folder"})
		}
		if text, ok := n.rules.CheckFileName(path.Base(f.path)); !ok && (n.sidecar != nil || !nearSidecar(f.path, n.rules.Sidecar)) {
			n.faults = append(n.faults, Fault{Brief: "a type of file that the network does not take", Text: strings.TrimSuffix(text, "."),
				Advice: "Save it as one of these types, or take it out of the folder"})
		}
	}
}

// typeFiles finds out what each file is to the document.
func (n *networkFolder) typeFiles() {
	if n.rules.TypeFiles == nil || n.source == nil {
		return
	}
	var names []string
	for _, f := range n.files {
		names = append(names, f.path)
	}
	types, faults := n.rules.TypeFiles(n.source, n.rules.Folder, names)
	for _, f := range faults {
		n.faults = append(n.faults, n.faultOf(n.sidecar.path, f))
	}
	n.types, n.source = map[string]archive.FileType{}, nil
	for i, name := range names {
		n.types[name] = types[i]
	}
}

// describe returns what follows from the document and the files that were packed.
func (n *networkFolder) describe(packed []archive.File) Sealed {
	document, files := packed[0], packed[1:]
	for i, f := range files {
		files[i].Type = n.types[f.Path]
	}
	content := archive.NetworkContent(files, document.SHA256)
	return Sealed{
		ID: archive.DeriveNetworkID(content, document.SHA256), Content: content, Metadata: n.document.Metadata(), MetadataDigest: document.SHA256,
		Document: n.document, Number: n.document.NetworkNumberDigest(),
		Files: files, Others: append([]archive.File{document}, n.auxiliary...), Junk: n.junk, Endings: n.endings, Owners: n.owners(), AsRead: n.form.asRead,
	}
}
