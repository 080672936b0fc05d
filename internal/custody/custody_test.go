package custody

import (
	"archive/zip"
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"vaultd/internal/archive"
	"vaultd/internal/durable"
	"vaultd/internal/test/faults"
	"vaultd/internal/test/kit"
)

var (
	extract = archive.Extract{ID: "4711", Type: archive.DeltaExtract, Name: "books", Files: 2, Status: "WaitingForExport",
		Start: time.Date(2026, 10, 13, 0, 0, 0, 0, time.UTC), End: time.Date(2026, 10, 14, 0, 0, 0, 0, time.UTC)}
	heldAt = time.Date(2026, 10, 14, 6, 0, 0, 5, time.UTC)
)

const definition = `[{"Table name":"IA_INVOICE","Columns":[{"Column name":"NUMBER"}]}]`

func open(t *testing.T, dir string, fault durable.Hook) *Custody {
	t.Helper()
	c := kit.Value(Open(dir, "ledger-1", "test", fault))(t)
	t.Cleanup(func() { c.Close() })
	return c
}

// zipOf returns a ZIP with one entry for each pair of a name and a content.
func zipOf(t testing.TB, pairs ...string) []byte {
	t.Helper()
	var b bytes.Buffer
	z := zip.NewWriter(&b)
	for i := 0; i < len(pairs); i += 2 {
		w, err := z.Create(pairs[i])
		if err == nil {
			_, err = io.WriteString(w, pairs[i+1])
		}
		kit.Must(t, err)
	}
	kit.Must(t, z.Close())
	return b.Bytes()
}

func gzipOf(t testing.TB, content string) []byte {
	t.Helper()
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	io.WriteString(z, content)
	kit.Must(t, z.Close())
	return b.Bytes()
}

// keep puts one file into custody, as an engine does.
func keep(h *Holding, number int, name string, content []byte) (File, error) {
	p, err := h.Begin(number, archive.ExtractFile{Extract: extract.ID, Name: name, Table: "IA_INVOICE"})
	if err != nil {
		return File{}, err
	}
	defer p.Abandon()
	if _, err := io.Copy(p, bytes.NewReader(content)); err != nil {
		return File{}, err
	}
	return p.Commit(context.Background())
}

// hold does all that an extract of two files needs, from opening the folder on.
func hold(dir string, first, second []byte, fault durable.Hook) (m Manifest, err error) {
	c, err := Open(dir, "ledger-1", "test", fault)
	if err != nil {
		return m, err
	}
	defer c.Close()
	h, err := c.Begin(extract)
	if err != nil {
		return m, err
	}
	defer h.Close()
	var files []HeldFile
	for i, content := range [][]byte{first, second} {
		name := fmt.Sprintf("IA_INVOICE_%d", i+1)
		f, err := keep(h, i+1, name, content)
		if err != nil {
			return m, err
		}
		files = append(files, HeldFile{Name: name, Table: "IA_INVOICE", File: f})
	}
	d, err := h.Definition([]byte(definition))
	if err != nil {
		return m, err
	}
	m, _, err = h.Seal(files, d, heldAt)
	return m, err
}

// checkHeld demands that the folder holds the two files, whole and under their own names.
func checkHeld(t *testing.T, dir string, first, second []byte) {
	t.Helper()
	c := open(t, dir, nil)
	m, err := c.Find(extract.ID)
	kit.Must(t, err)
	kit.Want(t, "the error of Verify", c.Verify(t.Context(), m), nil)
	if len(m.Files) != 2 || m.Files[0].SHA256 != archive.Sum(first) || m.Files[1].SHA256 != archive.Sum(second) || m.Files[0].Beside != "" {
		t.Errorf(`%+v, want len(m.Files) = 2, m.Files[0].SHA256 = %v, m.Files[1].SHA256 = %v, m.Files[0].Beside = ""`, m.Files, archive.Sum(first), archive.Sum(second))
	}
	kit.Want(t, "string(raw)", string(kit.Value(c.ReadDefinition(m))(t)), definition)
	n := 0
	for other, err := range c.Manifests() {
		if n++; err != nil || other.Extract.ID != extract.ID || !other.Extract.End.Equal(extract.End) {
			t.Errorf("%+v, %v, want no error, other.Extract.ID = %v, other.Extract.End = %v", other, err, extract.ID, extract.End)
		}
	}
	kit.Want(t, "manifests", n, 1)
	entries, err := os.ReadDir(filepath.Join(dir, extractFolder, "4711", fileFolder))
	for _, e := range entries {
		kit.Check(t, strings.HasPrefix(e.Name(), ".") || e.Name() == "0001-IA_INVOICE_1" || e.Name() == "0002-IA_INVOICE_2",
			"%s lies there", e.Name())
	}
	kit.Want(t, "the error", err, nil)
}

// I30, I5: whatever operation of the disk fails, not done or done all the same, or is the last one of a process that dies: what bears
// a name is whole, a manifest names files that are whole, and the next start comes to the end.
func TestCustody_I30_EachOperationFails(t *testing.T) {
	first, second := zipOf(t, "a.json", strings.Repeat(`{"NUMBER":"1"}`, 100)), gzipOf(t, "NUMBER;AMOUNT\n1;2\n")
	faults.EachOperation(t, 1, 20, func(f *faults.Fault) {
		dir := t.TempDir()
		f.On = true
		_, err := hold(dir, first, second, f.File)
		checkWholeOrNothing(t, dir)
		kit.Check(t, err != nil || f.Fired() == "" || strings.HasPrefix(f.Fired(), "unlink"),
			"nothing is said of the fault")
		kit.Value(hold(dir, first, second, nil))(t)
		checkHeld(t, dir, first, second)
	})
}

// checkWholeOrNothing demands that what bears a name after a fault is whole.
func checkWholeOrNothing(t *testing.T, dir string) {
	t.Helper()
	c := kit.Value(Open(dir, "ledger-1", "test", nil))(t)
	defer c.Close()
	for m, err := range c.Manifests() {
		if err == nil {
			err = c.Verify(t.Context(), m)
		}
		kit.Want(t, "a manifest", err, nil)
	}
	files, _ := filepath.Glob(filepath.Join(dir, extractFolder, "*", fileFolder, "*"))
	for _, path := range files {
		if filepath.Ext(path) == partEnding {
			continue
		}
		f := kit.Value(os.Open(path))(t)
		info, _ := f.Stat()
		kit.Want(t, path, kit.Err(readContainer(t.Context(), f, info.Size(), maxUnpacked, false)), nil)
		f.Close()
	}
}

// I30: what is no whole file is not kept, and what it was is told.
func TestCommit_I30_Damaged(t *testing.T) {
	whole, packed := zipOf(t, "a.json", strings.Repeat("content ", 1000)), gzipOf(t, strings.Repeat("content ", 1000))
	flipped := bytes.Clone(whole)
	flipped[60] ^= 0xff
	trailer := bytes.Clone(packed)
	trailer[len(trailer)-5] ^= 0xff
	long := zipOf(t, "a", "b")
	long = append(long[:len(long)-22], append(make([]byte, maxDirectory), long[len(long)-22:]...)...)
	kit.Rows(t, map[string][]byte{
		"ZIPCut": whole[:len(whole)-30], "ZIPFlipped": flipped, "GzipCut": packed[:len(packed)-9], "GzipTrailer": trailer,
		"Nothing": nil, "Page": []byte("<html>sign in</html>"), "LongDirectory": long, "HalfAHead": []byte("PK"), "GzipAndMore": append(bytes.Clone(packed), "more"...),
	}, func(t *testing.T, content []byte) {
		dir := t.TempDir()
		h := kit.Value(open(t, dir, nil).Begin(extract))(t)
		defer h.Close()
		f, err := keep(h, 1, "a.zip", content)
		_, is := errors.AsType[*DamagedError](err)
		kit.Check(t, is, "got %+v, %v", f, err)
		left, _ := os.ReadDir(filepath.Join(dir, extractFolder, "4711", fileFolder))
		kit.Check(t, len(left) == 0, "%v stays", left)
	})
}

// I19: names of the service lead nowhere, and what somebody planted in the folder is not followed.
func TestCustody_I19_NamesAndLinks(t *testing.T) {
	dir, other := t.TempDir(), t.TempDir()
	c := open(t, dir, nil)
	h := kit.Value(c.Begin(archive.Extract{ID: "..x", Files: 1}))(t)
	defer h.Close()
	f, err := keep(h, 1, "../../../etc/passwd\x00\nä", zipOf(t, "../../evil", "x", "/abs", "y"))
	kit.Check(t, err == nil && f.Stored == "0001-.._.._.._etc_passwd___",
		`%+v, %v, want no error, f.Stored = "0001-.._.._.._etc_passwd___"`, f, err)
	kit.Check(t, strings.HasPrefix(filepath.Base(h.path), madeName) && len(h.path) <= len(dir)+60,
		"h.path = %v, want filepath.Base(h.path) that begins with %q, len(h.path) <= %v", h.path, madeName, len(dir)+60)
	kit.Must(t, os.WriteFile(filepath.Join(other, "precious"), []byte("mine"), 0o600))
	files := filepath.Join(h.path, fileFolder)
	kit.Must(t, errors.Join(os.Symlink(filepath.Join(other, "precious"), filepath.Join(files, "0002-b")), unix.Mkfifo(filepath.Join(files, "0003-c"), 0o600)))
	for number, name := range map[int]string{2: "b", 3: "c"} {
		kit.Fails(t, name+" is kept", kit.Err(keep(h, number, name, zipOf(t, "a", "b"))))
	}
	b, err := os.ReadFile(filepath.Join(other, "precious"))
	kit.Check(t, string(b) == "mine" && err == nil, `%s, %v, want string(b) = "mine", no error`, b, err)
	kit.Must(t, os.Symlink(other, filepath.Join(dir, extractFolder, "77")))
	kit.Fails(t, "a link was followed", kit.Err(c.Begin(archive.Extract{ID: "77"})))
}

// Two numbers of the service never share a folder, also on disks that do not tell capital letters from small ones.
func TestFolderName_I8_BelongsToOneExtract(t *testing.T) {
	seen := map[string]archive.ExtractID{}
	long := archive.ExtractID(strings.Repeat("9", 150))
	for _, id := range []archive.ExtractID{"a1", "A1", "a.1", ".a1", "id-a1", archive.ExtractID(madeName + archive.Sum([]byte("A1")).String()[:32]), "a1~", long, long + "1", "..."} {
		name := folderName(id)
		had, taken := seen[strings.ToLower(name)]
		kit.Check(t, !taken && len(name) <= 100 && !strings.HasPrefix(name, "."), "%s and %s have the folder %s", had, id, name)
		seen[strings.ToLower(name)] = id
	}
}

// Other bytes under a name that is held lie beside it; the same bytes again change nothing.
func TestCommit_I30_OtherBytesLieBeside(t *testing.T) {
	h := kit.Value(open(t, t.TempDir(), nil).Begin(extract))(t)
	defer h.Close()
	want := []File{{Stored: "0001-a"}, {Stored: "0001-a"}, {Stored: "0001-a.other-1", Beside: "0001-a"}, {Stored: "0001-a.other-1", Beside: "0001-a"}, {Stored: "0001-a.other-2", Beside: "0001-a"}}
	for i, content := range []string{"first", "first", "second", "second", "third!"} {
		f, err := keep(h, 1, "a", zipOf(t, "a", content))
		if err != nil || f.Stored != want[i].Stored || f.Beside != want[i].Beside || f.SHA256 != archive.Sum(zipOf(t, "a", content)) {
			t.Errorf("%s: %+v, %v, want no error, f.Stored = %v, f.Beside = %v, f.SHA256 = %v", content, f, err, want[i].Stored, want[i].Beside, archive.Sum(zipOf(t, "a", content)))
		}
	}
}

// A manifest is written once: a second one of the same files is the first one, and one of other files is refused.
func TestSeal_I30_IsWrittenOnce(t *testing.T) {
	dir := t.TempDir()
	first, second := zipOf(t, "a", "1"), zipOf(t, "a", "2")
	m := kit.Value(hold(dir, first, second, nil))(t)
	c := open(t, dir, nil)
	h := kit.Value(c.Begin(extract))(t)
	defer h.Close()
	again, digest, err := h.Seal(m.Files, m.Definition, heldAt.Add(time.Hour))
	content, readErr := os.ReadFile(filepath.Join(h.path, manifestFile))
	if err != nil || readErr != nil || !again.HeldAt.Equal(m.HeldAt) || digest != archive.Sum(content) {
		t.Errorf("%+v, %v, %v, want no error, readErr = nil, again.HeldAt = %v, digest = %v", again, err, readErr, m.HeldAt, archive.Sum(content))
	}
	_, _, err = h.Seal(m.Files[:1], m.Definition, heldAt)
	kit.Check(t, err != nil, "a manifest was replaced")
	now, _ := os.ReadFile(filepath.Join(h.path, manifestFile))
	kit.Check(t, bytes.Equal(now, content), "the manifest changed")
}

func TestVerify_I4_TellsWhatChanged(t *testing.T) {
	first, second := zipOf(t, "a", "1"), zipOf(t, "a", "2")
	for name, change := range map[string]func(path string) error{
		"Missing": os.Remove,
		"Shorter": func(path string) error { return os.Truncate(path, 10) },
		"OtherBytes": func(path string) error {
			b, err := os.ReadFile(path)
			b[len(b)-1]++
			return errors.Join(err, os.WriteFile(path, b, 0o600))
		},
	} {
		dir := t.TempDir()
		m := kit.Value(hold(dir, first, second, nil))(t)
		c := open(t, dir, nil)
		kit.Must(t, change(filepath.Join(dir, extractFolder, "4711", fileFolder, m.Files[1].Stored)))
		changed, is := errors.AsType[*ChangedError](c.Verify(t.Context(), m))
		kit.Check(t, is && strings.Contains(changed.Path, m.Files[1].Stored),
			"%s: %v, want is, changed.Path with %q", name, changed, m.Files[1].Stored)
	}
}

// I15: a folder of another ledger or environment, or one that is no custody folder, is not written to.
func TestOpen_I15_ForeignFolders(t *testing.T) {
	dir := t.TempDir()
	open(t, dir, nil)
	for _, who := range [][2]string{{"ledger-2", "test"}, {"ledger-1", "production"}} {
		_, err := Open(dir, who[0], who[1], nil)
		_, is := errors.AsType[*ForeignError](err)
		kit.Check(t, is, "%v: %v, want is", who, err)
	}
	home := t.TempDir()
	kit.Must(t, os.WriteFile(filepath.Join(home, "letter.txt"), []byte("dear"), 0o600))
	if _, err := Open(home, "ledger-1", "test", nil); err == nil || !strings.Contains(err.Error(), "letter.txt") {
		t.Errorf(`err = %v, want an error, err with "letter.txt"`, err)
	}
	entries, _ := os.ReadDir(home)
	kit.Check(t, len(entries) == 1, "%v, want len(entries) = 1", entries)
	kit.Fails(t, "err", kit.Err(Open(filepath.Join(home, "none"), "ledger-1", "test", nil)), fs.ErrNotExist)
	kit.Must(t, os.WriteFile(filepath.Join(dir, ownerFile), []byte("{"), 0o600))
	_, err := Open(dir, "ledger-1", "test", nil)
	kit.Check(t, err != nil && strings.Contains(err.Error(), "damaged"), `err = %v, want an error, err with "damaged"`, err)
}

func TestEachEntry_ReadsWhatIsPacked(t *testing.T) {
	dir := t.TempDir()
	m := kit.Value(hold(dir, zipOf(t, "folder/", "", "a.json", "[1]", "b.json", "[2]"), gzipOf(t, "[3]"), nil))(t)
	c := open(t, dir, nil)
	var got []string
	for _, f := range m.Files {
		kit.Want(t, "the error", c.EachEntry(m, f, func(name string, content io.Reader) error {
			b, err := io.ReadAll(content)
			got = append(got, name+"="+string(b))
			return err
		}), nil)
	}
	kit.Want(t, "the records", fmt.Sprint(got), "[a.json=[1] b.json=[2] =[3]]")
}

// Whatever a service sends, it is kept whole or refused as damaged, and memory stays bounded.
func FuzzReadContainer(f *testing.F) {
	f.Add(zipOf(f, "a", "b"))
	f.Add(gzipOf(f, "a"))
	f.Add([]byte("PK\x05\x06"))
	f.Fuzz(func(t *testing.T, b []byte) {
		form, err := readContainer(t.Context(), bytes.NewReader(b), int64(len(b)), maxUnpacked, false)
		_, is := errors.AsType[*DamagedError](err)
		kit.Check(t, err == nil || is, "%q: %v", b, err)
		kit.Check(t, err != nil || form == ZIP || form == Gzip, "%q is taken for %q", b, form)
	})
}

// I5: the order on disk, which a loss of power shows: the bytes are synced before the file gets its name, the name before the manifest is
// written, and the manifest like a file.
func TestCustody_I5_OrderOnDisk(t *testing.T) {
	var ops []string
	kit.Value(hold(t.TempDir(), zipOf(t, "a", "1"), zipOf(t, "a", "2"), func(op, name string, do func() error) error {
		if op != "write" && op != "unlink" && op != "mount" {
			ops = append(ops, op+" "+filepath.Base(name))
		}
		return do()
	}))(t)
	all := strings.Join(ops, ", ")
	kit.Holds(t, "what was done", all,
		"sync 0001-IA_INVOICE_1.part, rename 0001-IA_INVOICE_1.part, rename 0001-IA_INVOICE_1, syncdir files",
		"sync 0002-IA_INVOICE_2.part, rename 0002-IA_INVOICE_2.part, rename 0002-IA_INVOICE_2, syncdir files",
		"sync manifest.json, rename manifest.json, syncdir 4711",
	)
	kit.Check(t, strings.Index(all, "create manifest.json") >= strings.LastIndex(all, "syncdir files"),
		"the manifest was written before all files were durable: %s", all)
}
