package packager

import (
	"archive/zip"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
	"unicode/utf16"

	"vaultd/internal/archive"
	"vaultd/internal/durable"
	"vaultd/internal/networkapi"
	"vaultd/internal/test/kit"
)

const networkDocument = `{
  "documentType": "Invoice",
  "data": {
    "externalDocumentIdentifier": {"id": "RE-4711"},
    "issueDate": "2026-10-31",
    "documentCurrencyCode": "EUR",
    "accountingSupplierParty": {"partyName": "Müller & Söhne"},
    "taxTotal": {"taxSubtotals": [{"taxableAmount": 9007199254740993.10}]}
  },
  "processingPreference": {"sentTo": {"id": "003712345678", "schemeId": "ISO6523-ACTORID-UPIS"}}
}
`

// networkRules ask the client of the network, as the program does.
var networkRules = NetworkRules{
	Check: func(document []byte) (faults []DocumentFault) {
		for _, f := range networkapi.CheckDocument(document) {
			faults = append(faults, DocumentFault(f))
		}
		return faults
	},
	Read: networkapi.ReadMetadata, CheckFileName: networkapi.CheckFileName, MaxDocument: networkapi.MaxDocument,
}

// sealNetwork seals root into a fresh spool.
func sealNetwork(t *testing.T, root *os.Root, r NetworkRules, hook durable.Hook) (Sealed, string, error) {
	t.Helper()
	return intoSpool(t, "k.zip", hook, func(dir *durable.Dir) (Sealed, error) {
		return BuildNetwork(context.Background(), root, r, dir, "k.zip")
	})
}

// intoSpool makes a file in a fresh spool, and checks that a failure leaves
// nothing there.
func intoSpool[S any](t *testing.T, name string, hook durable.Hook, build func(dir *durable.Dir) (S, error)) (S, string, error) {
	t.Helper()
	spool := t.TempDir()
	dir := kit.Value(durable.Open(spool, hook))(t)
	defer dir.Close()
	s, err := build(dir)
	left, _ := os.ReadDir(spool)
	kit.Check(t, (err != nil || len(left) == 1 && left[0].Name() == name) && (err == nil || len(left) == 0),
		"spool after %v: %v", err, left)
	return s, filepath.Join(spool, name), err
}

// entriesOf returns the names of a ZIP's entries in their order, and their contents.
func entriesOf(t *testing.T, path string) (names []string, contents tree) {
	t.Helper()
	z := kit.Value(zip.OpenReader(path))(t)
	defer z.Close()
	contents = tree{}
	for _, f := range z.File {
		r := kit.Value(f.Open())(t)
		content := kit.Value(io.ReadAll(r))(t)
		names, contents[f.Name] = append(names, f.Name), string(content)
	}
	return names, contents
}

// I4, I10: one ZIP holds the document first and then the files, byte for byte; everything about it follows from these bytes.
func TestNetwork_I4_I10_DocumentAndFiles(t *testing.T) {
	files := tree{"document.json": networkDocument, "b.xml": "<a/>", "Anhang.PDF": goodPDF, "._b.xml": "x", "Thumbs.db": "x", "_REASON.txt": "old", "_DELIVERED.txt": "old", "_DELIVERED.json": "{}", "@eaDir/x": "x"}
	dir, root := drop(t, files)
	s, path, err := sealNetwork(t, root, networkRules, nil)
	kit.Must(t, err)
	names, contents := entriesOf(t, path)
	if !slices.Equal(names, []string{"document.json", "Anhang.PDF", "b.xml"}) || contents["document.json"] != networkDocument || contents["b.xml"] != "<a/>" {
		t.Errorf(`%q, want names = %v, contents["document.json"] = %v, contents["b.xml"] = "<a/>"`, names, []string{"document.json", "Anhang.PDF", "b.xml"}, networkDocument)
	}
	file := func(name string) archive.File {
		return archive.File{Path: name, Size: int64(len(files[name])), SHA256: archive.Sum([]byte(files[name]))}
	}
	document, sent := archive.Sum([]byte(networkDocument)), []archive.File{file("Anhang.PDF"), file("b.xml")}
	content := archive.NetworkContent(sent, document)
	if !slices.Equal(s.Files, sent) || !slices.Equal(s.Others, []archive.File{file("document.json")}) || len(s.Junk) != 6 {
		t.Errorf("%+v, %+v, %q, want s.Files = %v, s.Others = %v, len(s.Junk) = 6", s.Files, s.Others, s.Junk, sent, []archive.File{file("document.json")})
	}
	kit.Check(t, s.Content == content && s.MetadataDigest == document && s.ID == archive.DeriveNetworkID(content, document),
		"%+v, want s.Content = %v, s.Metadata = %v, s.ID = %v", s, content, document, archive.DeriveNetworkID(content, document))
	want := `{"documentType":"Invoice","documentId":"RE-4711","documentDate":"2026-10-31T00:00:00Z","senderName":"Müller & Söhne","recipientIds":["003712345678"],"currencyCode":"EUR","amount":9007199254740993.10,"flowDirection":"sending"}`
	kit.Want(t, fmt.Sprint(s.Document.Metadata()), string(s.Document.Metadata()), want)
	sealed, err := os.ReadFile(path)
	if err != nil || s.Package.Path != "k.zip" || s.Package.SHA256 != archive.Sum(sealed) || s.Package.Size != int64(len(sealed)) {
		t.Errorf(`%+v, %v, want no error, s.Package.Path = "k.zip", s.Package.SHA256 = %v, s.Package.Size = %v`, s.Package, err, archive.Sum(sealed), int64(len(sealed)))
	}
	again, _, err := sealNetwork(t, root, networkRules, nil)
	kit.Check(t, err == nil && again.Package == s.Package && again.ID == s.ID,
		"the same folder gives another ZIP: %+v, %v", again.Package, err)
	validated, err := ValidateNetwork(context.Background(), root, networkRules)
	kit.Check(t, err == nil && validated.ID == s.ID && validated.Package == (archive.Package{}),
		"%+v, %v, want no error, validated.ID = %v, validated.Package = (archive.Package{})", validated, err, s.ID)
	// A blank in the document makes another document, and the same files.
	write(t, dir+"/document.json", networkDocument+" ")
	if other, _, err := sealNetwork(t, root, networkRules, nil); err != nil || other.ID == s.ID || other.Content != s.Content {
		t.Errorf("%+v, %v, want no error, other.ID other than %v, other.Content = %v", other, err, s.ID, s.Content)
	}
}

func TestNetwork_Taken(t *testing.T) {
	type row struct {
		files  tree
		change func(r *NetworkRules)
		count  int
		others []string
	}
	kit.Rows(t, map[string]row{
		"OnlyTheDocument": {files: tree{"document.json": networkDocument}, others: []string{"document.json"}},
		"ByteOrderMark":   {files: tree{"document.json": "\xef\xbb\xbf" + networkDocument, "a.pdf": "x"}, count: 1, others: []string{"document.json"}},
		"InCapitals":      {files: tree{"Document.JSON": networkDocument, "a.pdf": "x"}, count: 1, others: []string{"Document.JSON"}},
		"OtherName":       {files: tree{"invoice.json": networkDocument}, change: func(r *NetworkRules) { r.Sidecar = "invoice.json" }, others: []string{"invoice.json"}},
		"WithList": {files: tree{"document.json": networkDocument, "a.pdf": "x", "manifest-sha256.txt": archive.Sum([]byte("x")).String() + "  a.pdf\n" + archive.Sum([]byte(networkDocument)).String() + "  document.json\n"},
			change: func(r *NetworkRules) { r.Complete = "list" }, count: 1, others: []string{"document.json", "manifest-sha256.txt"}},
		"WithMarker":   {files: tree{"document.json": networkDocument, ".done": ""}, change: func(r *NetworkRules) { r.Complete = "marker" }, others: []string{"document.json", ".done"}},
		"NoType":       {files: tree{"document.json": strings.Replace(networkDocument, `"documentType": "Invoice",`, "", 1)}, others: []string{"document.json"}},
		"EmptyFolder":  {files: tree{"document.json": networkDocument, "a/.DS_Store": "x"}, others: []string{"document.json"}},
		"SidecarAsked": {files: tree{"document.json": networkDocument}, change: func(r *NetworkRules) { r.IncludeSidecar = true }, others: []string{"document.json"}},
	}, func(t *testing.T, row row) {
		_, root := drop(t, row.files)
		r := networkRules
		if row.change != nil {
			row.change(&r)
		}
		s, path, err := sealNetwork(t, root, r, nil)
		kit.Must(t, err)
		var others []string
		for _, f := range s.Others {
			others = append(others, f.Path)
		}
		names, _ := entriesOf(t, path)
		if len(s.Files) != row.count || !slices.Equal(others, row.others) || names[0] != row.others[0] || len(names) != 1+row.count {
			t.Errorf("%+v, %q, %q, want len(s.Files) = %v, others = %v, names[0] = %v, len(names) = %v", s.Files, others, names, row.count, row.others, row.others[0], 1+row.count)
		}
		missing, err := FindMissingNetworkFiles(root, r)
		kit.Check(t, err == nil && len(missing) <= 0, "waits for %q, %v", missing, err)
	})
}

func utf16Text(s string) string {
	var b bytes.Buffer
	b.WriteString("\xff\xfe")
	for _, u := range utf16.Encode([]rune(s)) {
		b.Write([]byte{byte(u), byte(u >> 8)})
	}
	return b.String()
}

// Each bad folder has its words for whoever dropped it, and all that is wrong is told at once.
func TestNetwork_Refused(t *testing.T) {
	good := tree{"document.json": networkDocument, "a.pdf": "%PDF"}
	with := func(more tree) tree {
		all := tree{"document.json": networkDocument}
		for name, content := range more {
			all[name] = content
		}
		return all
	}
	replaced := func(old, new string) tree {
		return tree{"document.json": strings.Replace(networkDocument, old, new, 1)}
	}
	for name, row := range map[string]struct {
		files  tree
		more   func(t *testing.T, dir string)
		change func(r *NetworkRules)
		words  []string
	}{
		"OneFault":      {files: replaced("ISO6523-ACTORID-UPIS", "GLN"), words: []string{`NOT SENT. document.json, line 10, "sentTo.id": a GLN has 13 digits`, ", then move this whole folder back.\n"}},
		"WithAdvice":    {files: replaced(`"documentCurrencyCode": "EUR",`, ""), words: []string{`NOT SENT. document.json, line 3, "documentCurrencyCode" is missing. Write the ISO 4217 code, like EUR, then move this whole folder back.`}},
		"DuplicateKey":  {files: replaced(`"issueDate"`, `"documentCurrencyCode": "USD", "issueDate"`), words: []string{"stands here a second time", "Delete one of the two, then move"}},
		"UTF16":         {files: tree{"document.json": utf16Text(networkDocument)}, words: []string{`document.json is saved as Unicode (UTF-16). Open it with Notepad`}},
		"Word":          {files: tree{"document.json": "PK\x03\x04 x"}, words: []string{"document.json is a word processor's document, not plain text. Export it again, as plain JSON, then move this whole folder back."}},
		"EmptyDocument": {files: tree{"document.json": ""}, words: []string{"document.json is empty. Export it again"}},
		"Latin1":        {files: replaced("ü", "\xfc"), words: []string{"document.json, line 7: the file is not JSON here: a character that is not UTF-8. Save the file again"}},
		"CutOff":        {files: tree{"document.json": networkDocument[:100]}, words: []string{"NOT SENT. document.json, line", "the file is not JSON here"}},
		"List":          {files: tree{"document.json": "[]"}, words: []string{"document.json, line 1: the file is not an object in { }. Write {"}},
		"UnknownMember": {files: replaced(`"data"`, `"fileRefs": [], "data"`), words: []string{`"fileRefs" is not known here, and would not be sent; invoice fields belong into "data". Put it right, then`}},
		"HugeDocument": {more: func(t *testing.T, dir string) {
			write(t, dir+"/document.json", "")
			os.Truncate(dir+"/document.json", 100_000_000_000)
		}, words: []string{"document.json has 100000 MB; a document has at most 8.4 MB"}},
		"HEIC":            {files: with(tree{"photo.heic": "x"}), words: []string{"NOT SENT. photo.heic: the network takes CSV, DOC", "ZIP. Save it as one of these types, or take it out of the folder, then move"}},
		"NoEnding":        {files: with(tree{"LIESMICH": "x"}), words: []string{"LIESMICH: the network takes"}},
		"SecondJSON":      {files: with(tree{"data.json": "{}"}), words: []string{"data.json: the network takes"}},
		"Folder":          {files: with(tree{"Anlagen/a.pdf": "x", "Anlagen/b.pdf": "x"}), words: []string{"NOT SENT. Anlagen is a folder with files in it, and the network knows no folders. Move its files up, then"}},
		"EmptyFile":       {files: with(tree{"a.pdf": ""}), words: []string{"NOT SENT. a.pdf is empty: it has 0 bytes. Copy it again, or take it out of the folder, then"}},
		"EmptyFolder":     {files: tree{}, words: []string{"NOT SENT. The folder is empty. Put document.json and the files of the invoice into it, then"}},
		"NoDocument":      {files: tree{"a.pdf": "x"}, words: []string{"NOT SENT. The folder has no document.json. Put it into the folder, then"}},
		"HiddenExtension": {files: tree{"a.pdf": "x", "document.json.txt": networkDocument}, words: []string{"NOT SENT. The folder has document.json.txt in place of document.json. Rename it to document.json"}},
		"MisspeltName":    {files: tree{"documnet.json": networkDocument}, words: []string{"NOT SENT. The folder has documnet.json in place of document.json."}},
		"CaseTwins":       {files: with(tree{"a.pdf": "x", "A.PDF": "y"}), words: []string{"a.pdf has the same name as A.PDF but for capital letters"}},
		"TwoDocuments":    {files: with(tree{"Document.json": networkDocument}), words: []string{"document.json has the same name as Document.json"}},
		"Link":            {files: good, more: func(t *testing.T, dir string) { os.Symlink("/etc/passwd", dir+"/b.pdf") }, words: []string{"NOT SENT. b.pdf is a link, not a file."}},
		"DocumentIsALink": {files: tree{"a.pdf": "x", "b.txt": networkDocument}, more: func(t *testing.T, dir string) { os.Symlink("b.txt", dir+"/document.json") }, words: []string{"NOT SENT. document.json is a link, not a file."}},
		"HardLink":        {files: good, more: func(t *testing.T, dir string) { os.Link(dir+"/a.pdf", filepath.Join(t.TempDir(), "x")) }, words: []string{"a.pdf is a hard link"}},
		"Pipe":            {files: good, more: func(t *testing.T, dir string) { syscall.Mkfifo(dir+"/b.pdf", 0o600) }, words: []string{"b.pdf is a named pipe"}},
		"FolderAsNote":    {files: with(tree{"_delivered.json/a.pdf": "x"}), words: []string{"_delivered.json is a folder, and vaultd writes a file of this name"}},
		"HugeSparse":      {files: good, more: func(t *testing.T, dir string) { os.Truncate(dir+"/a.pdf", 100_000_000_000) }, words: []string{"NOT SENT. The folder holds 100000 MB; at most 100 MB are sent. Largest: a.pdf"}},
		"TooLarge":        {files: with(tree{"a.zip": noise(1, 3000)}), change: func(r *NetworkRules) { r.MaxSize = 2000 }, words: []string{"NOT SENT. Packed, the folder is more than 0.0 MB; at most 0.0 MB are sent. Largest: a.zip"}},
		"NotInTheList":    {files: with(tree{"a.pdf": "x", "manifest-sha256.txt": "# nothing\n"}), change: func(r *NetworkRules) { r.Complete = "list" }, words: []string{"a.pdf is in the folder but not in the list"}},
		"NoList":          {files: good, change: func(r *NetworkRules) { r.Complete = "list" }, words: []string{"The folder has no manifest-sha256.txt. Add it, with all names"}},
		"OtherThanListed": {files: with(tree{"a.pdf": "y", "manifest-sha256.txt": archive.Sum([]byte("x")).String() + "  a.pdf\n"}), words: []string{"a.pdf is not the file that is meant"}},
		"NoMarker":        {files: good, change: func(r *NetworkRules) { r.Complete = "marker" }, words: []string{"The folder has no file .done"}},
		"AllAtOnce": {files: tree{"document.json": strings.NewReplacer("EUR", "Euro", "ISO6523-ACTORID-UPIS", "GLN").Replace(networkDocument), "photo.heic": "x", "b.pdf": "", "sub/c.pdf": "x", `a\b.pdf`: "x"},
			words: []string{"NOT SENT. 6 things to put right.\n", "ISO 4217", "a GLN has", "backslash", "photo.heic", "b.pdf is empty", "sub is a folder", "Put all of this right, then move this whole folder back.\n"}},
	} {
		t.Run(name, func(t *testing.T) {
			dir, root := drop(t, row.files)
			if row.more != nil {
				row.more(t, dir)
			}
			r := networkRules
			if row.change != nil {
				row.change(&r)
			}
			_, _, err := sealNetwork(t, root, r, nil)
			refused, ok := errors.AsType[*Refusal](err)
			kit.Need(t, ok, "got %v, want a refusal", err)
			text := refused.Text()
			kit.Holds(t, "the text", text, row.words...)
			if strings.Contains(text, "ARCHIVED") || strings.Contains(text, "archive") || strings.Contains(text, "..") && name != "HEIC" {
				t.Errorf("%s", text)
			}
			_, err = ValidateNetwork(context.Background(), root, r)
			kit.Check(t, err != nil && err.Error() == refused.Error(), "ValidateNetwork says %v, BuildNetwork %v", err, refused)
			kit.Lacks(t, "the refusal", refused.Error(), "Müller", "4711", "003712345678")
		})
	}
}

// What a refused document says stays readable for people.
func TestNetwork_RefusedAsRead(t *testing.T) {
	_, root := drop(t, tree{"document.json": strings.Replace(networkDocument, "ISO6523-ACTORID-UPIS", "GLN", 1)})
	_, _, err := sealNetwork(t, root, networkRules, nil)
	refused, _ := errors.AsType[*Refusal](err)
	if refused == nil || refused.AsRead.Number != "RE-4711" || refused.AsRead.Amount != "9007199254740993.10" || refused.AsRead.SenderName != "Müller & Söhne" || refused.AsRead.RecipientIDs != "003712345678" {
		t.Errorf(`%+v, want refused other than nil, refused.AsRead.Number = "RE-4711", refused.AsRead.Amount = "9007199254740993.10", refused.AsRead.SenderName = "Müller & Söhne", refused.AsRead.RecipientIDs = "003712345678"`, refused)
	}
}

// I17: large files are packed in pieces and read back whole; what is larger than all that is sent is refused by its true size.
func TestNetwork_I17_LargeFiles(t *testing.T) {
	kit.Long(t, "files of 60 and 100 MB for the network")
	large := noise(1, 60<<20)
	_, root := drop(t, tree{"document.json": networkDocument, "a.tif": large})
	s, path, err := sealNetwork(t, root, networkRules, nil)
	kit.Must(t, err)
	_, contents := entriesOf(t, path)
	kit.Check(t, contents["a.tif"] == large && s.Files[0].SHA256 == archive.Sum([]byte(large)), "the ZIP holds another file")
	_, root = drop(t, tree{"document.json": networkDocument, "a.tif": noise(2, 100<<20)})
	_, _, err = sealNetwork(t, root, networkRules, nil)
	if refused, is := errors.AsType[*Refusal](err); !is || !strings.Contains(refused.Text(), "Packed, the folder is more than 100 MB; at most 100 MB are sent. Largest: a.tif, 105 MB") {
		t.Errorf(`err = %v, want is, refused.Text() with "Packed, the folder is more than 100 MB; at most 100 MB are sent. Largest: a.tif, 105 MB"`, err)
	}
}

// I4: real invoices go into the ZIP byte for byte, each beside a document.
func TestNetwork_I4_RealInvoices(t *testing.T) {
	from, n := corpus(t), 0
	for _, kind := range []string{"pdf", "ubl", "cii"} {
		dir := filepath.Join(from, kind)
		all := kit.Value(os.ReadDir(dir))(t)
		files := tree{"document.json": networkDocument}
		for _, e := range all {
			content := kit.Value(os.ReadFile(filepath.Join(dir, e.Name())))(t)
			files[e.Name()] = string(content)
		}
		_, root := drop(t, files)
		_, path, err := sealNetwork(t, root, networkRules, nil)
		if err != nil {
			t.Errorf("%s: %v", kind, err)
			continue
		}
		names, contents := entriesOf(t, path)
		kit.Check(t, maps.Equal(contents, files) && names[0] == "document.json" && slices.IsSorted(names[1:]),
			"%s: the ZIP holds %q", kind, names)
		n += len(names) - 1
	}
	t.Logf("%d real files packed for the network", n)
}

// I17: a folder that changes while it is packed is neither refused nor taken.
func TestNetwork_I17_ChangeWhilePacking(t *testing.T) {
	for name, change := range map[string]func(dir string) error{
		"DocumentGrows": func(dir string) error {
			return os.WriteFile(dir+"/document.json", []byte(networkDocument+" "), 0o644)
		},
		"DocumentSwapped": func(dir string) error {
			return errors.Join(os.WriteFile(dir+"/new", []byte(networkDocument), 0o644), os.Rename(dir+"/new", dir+"/document.json"))
		},
		"FileComes": func(dir string) error { return os.WriteFile(dir+"/z.pdf", []byte("x"), 0o644) },
		"FileGoes":  func(dir string) error { return os.Remove(dir + "/b.pdf") },
		"FileIsALink": func(dir string) error {
			return errors.Join(os.Remove(dir+"/b.pdf"), os.Symlink("/etc/passwd", dir+"/b.pdf"))
		},
	} {
		for _, at := range []string{"document.json", "b.pdf"} {
			t.Run(name+"/At "+at, func(t *testing.T) {
				dir, root := drop(t, tree{"document.json": networkDocument, "a.pdf": "x", "b.pdf": "x"})
				r, done := networkRules, false
				r.openFile = func(root *os.Root, path string) (*os.File, fs.FileInfo, error) {
					f, info, err := durable.OpenRegular(root, path)
					if path == at && !done {
						if done = true; change(dir) != nil {
							t.Error("the change failed")
						}
					}
					return f, info, err
				}
				if _, _, err := sealNetwork(t, root, r, nil); !errors.Is(err, archive.ErrChanged) {
					t.Errorf("got %v, want ErrChanged", err)
				}
			})
		}
	}
}

// I17: the document that is packed is the one that was checked. A file system may tell the same state of two contents, when they were written
// in one tick of its clock.
func TestNetwork_I17_SameStateOtherDocument(t *testing.T) {
	_, root := drop(t, tree{"document.json": networkDocument})
	n := kit.Value(readNetworkFolder(context.Background(), root, networkRules))(t)
	n.checkedDocument = archive.Sum([]byte("another document"))
	kit.Fails(t, "got", kit.Err(n.seal(context.Background(), nil, "", n.describe)), archive.ErrChanged)
}

// I24: a fault of a disk or of rights is no fault of the folder, and a damaged ZIP never gets its name.
func TestNetwork_I24_EnvironmentIsNoRefusal(t *testing.T) {
	type row struct {
		change func(r *NetworkRules)
		hook   durable.Hook
		want   error
	}
	kit.Rows(t, map[string]row{
		"NoRight": {change: func(r *NetworkRules) {
			r.openFile = func(_ *os.Root, path string) (*os.File, fs.FileInfo, error) {
				return nil, nil, &fs.PathError{Op: "open", Path: path, Err: syscall.EACCES}
			}
		}, want: fs.ErrPermission},
		"Mount": {change: func(r *NetworkRules) {
			r.openFile = func(*os.Root, string) (*os.File, fs.FileInfo, error) {
				return nil, nil, &durable.MountError{Path: "a.pdf"}
			}
		}, want: syscall.EXDEV},
		"DiskFull":    {hook: failOn("write", syscall.ENOSPC), want: syscall.ENOSPC},
		"SyncFails":   {hook: failOn("sync", syscall.EIO), want: durable.ErrSync},
		"RenameFails": {hook: failOn("rename", syscall.EIO), want: syscall.EIO},
		"NoCheck":     {change: func(r *NetworkRules) { r.Check = nil }},
		"BadName":     {change: func(r *NetworkRules) { r.Sidecar = "Thumbs.db" }},
	}, func(t *testing.T, row row) {
		_, root := drop(t, tree{"document.json": networkDocument, "a.pdf": "x"})
		r := networkRules
		if row.change != nil {
			row.change(&r)
		}
		_, _, err := sealNetwork(t, root, r, row.hook)
		kit.Check(t, err != nil && !isRefusal(err) && !errors.Is(err, archive.ErrChanged) && (row.want == nil || errors.Is(err, row.want)), "got %v", err)
	})
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	_, root := drop(t, tree{"document.json": networkDocument})
	kit.Fails(t, "ValidateNetwork", kit.Err(ValidateNetwork(ctx, root, networkRules)), context.Canceled)
}

// A folder that is still being written waits: a temporary name, a file that looks cut off, a file of its list that is missing.
func TestNetwork_Waits(t *testing.T) {
	_, root := drop(t, tree{"document.json": networkDocument, "a.pdf": "%PDF-1.7\nhalf", "~$a.docx": "x"})
	r := networkRules
	_, _, err := sealNetwork(t, root, r, nil)
	kit.Check(t, errors.Is(err, archive.ErrChanged), "a temporary name: %v", err)
	_, root = drop(t, tree{"document.json": networkDocument, "a.pdf": "%PDF-1.7\nhalf"})
	r.CutOffPatience, r.Now = time.Hour, time.Now
	_, _, err = sealNetwork(t, root, r, nil)
	kit.Check(t, errors.Is(err, archive.ErrChanged), "a file that looks cut off: %v", err)
	_, root = drop(t, tree{"document.json": `{"files": ["x.pdf"]}`, "manifest-sha256.txt": strings.Repeat("0", 64) + "  b.pdf\n"})
	for complete, want := range map[string][]string{"quiet": nil, "list": {"b.pdf"}, "marker": {".done"}} {
		r := networkRules
		r.Complete = complete
		kit.Want(t, complete, kit.Value(FindMissingNetworkFiles(root, r))(t), want)
	}
	_, root = drop(t, tree{"document.json": "{}"})
	r = networkRules
	r.Complete = "list"
	kit.Want(t, "missing", kit.Value(FindMissingNetworkFiles(root, r))(t), []string{"manifest-sha256.txt"})
}

func FuzzNetworkDocument(f *testing.F) {
	f.Add(networkDocument)
	f.Add(`{"data":{"documentCurrencyCode":"EUR"}}`)
	f.Add(utf16Text("{}"))
	f.Fuzz(func(t *testing.T, document string) {
		_, root := drop(t, tree{"document.json": document})
		s, err := ValidateNetwork(context.Background(), root, networkRules)
		switch {
		case isRefusal(err):
		case err != nil:
			t.Fatal(err)
		case s.MetadataDigest != archive.Sum([]byte(document)) || len(s.Files) != 0:
			t.Errorf("%+v, want s.MetadataDigest = %v, len(s.Files) = 0", s, archive.Sum([]byte(document)))
		}
	})
}
