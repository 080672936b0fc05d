package drop

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"vaultd/internal/archive"
	"vaultd/internal/durable"
	"vaultd/internal/test/faults"
	"vaultd/internal/test/kit"
)

// incomingOf is a folder with two files of this content.
func incomingOf(name string, contents ...string) archive.DropFolder {
	in := archive.DropFolder{Key: archive.Key{1, 15: 7}, Name: name, SidecarName: "metadata.json", Sidecar: []byte(`{"documentType":"Invoice"}`)}
	for i, c := range contents {
		in.Files = append(in.Files, archive.DropFile{
			File: archive.File{Path: fmt.Sprintf("000%d-a.zip", i+1), Size: int64(len(c)), SHA256: archive.Sum([]byte(c))},
			Open: func() (io.ReadCloser, error) { return io.NopCloser(strings.NewReader(c)), nil },
		})
	}
	return in
}

const extractName = "Extract 4711 0001-a.zip"

// wholeIn is what a drop folder has in it when the folder is in its place and nothing is left beside it.
func wholeIn(names ...string) []string {
	all := []string{".vaultd/", ".vaultd/claimed/", ".vaultd/incoming/"}
	for _, n := range names {
		all = append(all, n+"/", n+"/0001-a.zip", n+"/0002-a.zip", n+"/metadata.json")
	}
	return all
}

func TestPutFolder_I1_CrashAnywhereFinishes(t *testing.T) {
	put := func(f *Folder) error {
		name, err := f.PutFolder(t.Context(), incomingOf(extractName, "first", "second"))
		if err == nil && name != extractName {
			err = fmt.Errorf("it is called %q", name)
		}
		return err
	}
	crash(t, 20, func(string) {}, put, func(at string, f *Folder) {
		// What people see is nothing, or the whole folder: also right after the crash.
		seen := visible(t, f.cfg.Path)
		kit.Check(t, len(seen) == 0 || slices.Equal(seen, wholeIn(extractName)[3:]), "%s: %q is shown", at, seen)
		for range 2 { // also when it was done before
			kit.Want(t, at, put(f), nil)
		}
		kit.Want(t, at, tree(t, f.cfg.Path), wholeIn(extractName))
	})
}

// visible lists what lies in a drop folder beside .vaultd.
func visible(t *testing.T, path string) []string {
	return slices.DeleteFunc(tree(t, path), func(name string) bool { return strings.HasPrefix(name, ".vaultd") })
}

// Each operation fails once, not done and done: afterwards the same call ends with one whole folder and nothing beside it. A full disk keeps
// nothing of the call that met it.
func TestPutFolder_I5_NthFailure(t *testing.T) {
	faults.EachOperation(t, 1, 19, func(fault *faults.Fault) {
		cfg := config(share(t))
		open(t, cfg).Close()
		cfg.Hook = fault.File
		f := open(t, cfg)
		fault.On = true
		in := incomingOf(extractName, "first", "second")
		_, err := f.PutFolder(t.Context(), in)
		if fault.On = false; fault.Fired() == "" {
			kit.Must(t, err)
		}
		seen := visible(t, cfg.Path)
		kit.Check(t, len(seen) == 0 || slices.Equal(seen, wholeIn(extractName)[3:]), "%q is shown, want nothing or the whole folder", seen)
		if left := tree(t, cfg.Path); fault.Full && err != nil && !errors.Is(err, durable.ErrSync) && strings.HasPrefix(fault.Fired(), "write") && len(left) > 3 {
			t.Errorf("%q keeps the disk full", left)
		}
		if errors.Is(err, durable.ErrSync) {
			f.Close() // the process ends
			f = open(t, cfg)
		}
		kit.Value(f.PutFolder(t.Context(), in))(t)
		kit.Want(t, "the drop folder", tree(t, cfg.Path), wholeIn(extractName))
		f.Close()
	})
}

// A name that is taken gets a number, in any spelling; a folder of other content is not ours, one that was claimed is written again.
func TestPutFolder_TakenNames(t *testing.T) {
	path, f := opened(t)
	put(t, path, "EXTRACT 4711 0001-a.zip/theirs", "Extract 4711 0001-a.zip (2)/metadata.json", "Extract 4711 0001-a.zip (3)")
	os.Symlink("Extract 4711 0001-a.zip (2)", path+"/Extract 4711 0001-a.zip (4)")
	in := incomingOf(extractName, "first", "second")
	for _, want := range []string{"Extract 4711 0001-a.zip (5)", "Extract 4711 0001-a.zip (5)"} {
		kit.Want(t, "PutFolder", kit.Value(f.PutFolder(t.Context(), in))(t), want)
	}
	claim(t, f, "Extract 4711 0001-a.zip (5)")
	kit.Want(t, "after it was claimed", kit.Value(f.PutFolder(t.Context(), in))(t), "Extract 4711 0001-a.zip (5)")
	other := in
	other.Sidecar = []byte(`{"documentType":"CreditNote"}`)
	kit.Want(t, "of another sidecar", kit.Value(f.PutFolder(t.Context(), other))(t), "Extract 4711 0001-a.zip (6)")
}

func TestPutFolder_IsForPeople(t *testing.T) {
	old := syscall.Umask(0o077)
	defer syscall.Umask(old)
	cfg := config(share(t))
	if os.Getuid() == 0 {
		cfg.Group = "12345"
	}
	kit.Value(open(t, cfg).PutFolder(t.Context(), incomingOf(extractName, "first")))(t)
	for name, want := range map[string]fs.FileMode{"": fs.ModeDir | sharedDirMode, "/0001-a.zip": 0o660, "/metadata.json": 0o660} {
		info := kit.Value(os.Lstat(cfg.Path + "/" + extractName + name))(t)
		if info.Mode() != want || os.Getuid() == 0 && sysStat(info).Gid != 12345 {
			t.Errorf("%q has mode %v and group %d", name, info.Mode(), sysStat(info).Gid)
		}
	}
	kit.Want(t, "info.Mode().Perm()", kit.Value(os.Lstat(cfg.Path+"/.vaultd/incoming"))(t).Mode().Perm(), 0o700)
}

// What was not made by a call is never removed and never followed, and bytes that are not those of the record are never shown.
func TestPutFolder_I19_I4_Refuses(t *testing.T) {
	path, f := opened(t)
	in := incomingOf(extractName, "first", "second")
	staged := ".vaultd/incoming/" + in.Key.String()
	another := archive.Key{2, 15: 7}.String()
	rows := map[string]struct {
		plant  func()
		change func(in *archive.DropFolder)
		want   error
		stays  []string
	}{
		"LinkInIt": {plant: func() {
			put(t, path, staged+"/", "precious")
			os.Symlink("../../../precious", path+"/"+staged+"/0001-a.zip")
		}, want: ErrUnexpectedItem, stays: []string{staged + "/0001-a.zip", "precious"}},
		"FolderInIt":   {plant: func() { put(t, path, staged+"/sub/x") }, want: ErrUnexpectedItem, stays: []string{staged + "/sub/x"}},
		"NameOfOthers": {plant: func() { put(t, path, staged+"/Müller 4711.pdf") }, want: ErrUnexpectedItem, stays: []string{staged + "/Müller 4711.pdf"}},
		"LinkItself":   {plant: func() { put(t, path, "precious/0001-a.zip"); os.Symlink("../../precious", path+"/"+staged) }, want: syscall.ENOTDIR, stays: []string{"precious/0001-a.zip"}},
		"ReservedName": {change: func(in *archive.DropFolder) { in.Name = "_Archived" }, want: ErrReservedName},
		"Changed":      {change: func(in *archive.DropFolder) { in.Files[1].SHA256[0]++ }, want: ErrSourceDiffers},
		"Shorter":      {change: func(in *archive.DropFolder) { in.Files[1].Size++ }, want: ErrSourceDiffers},
		"Longer":       {change: func(in *archive.DropFolder) { in.Files[1].Size-- }, want: ErrSourceDiffers},
		"SourceMissing": {change: func(in *archive.DropFolder) {
			in.Files[1].Open = func() (io.ReadCloser, error) { return nil, fs.ErrNotExist }
		}, want: fs.ErrNotExist},
	}
	for name, r := range rows {
		t.Run(name, func(t *testing.T) {
			for _, old := range []string{"/precious", "/.vaultd/incoming"} {
				kit.Must(t, os.RemoveAll(path+old))
			}
			put(t, path, ".vaultd/incoming/"+another+"/0001-a.zip", ".vaultd/incoming/theirs")
			os.Chmod(path+"/.vaultd/incoming", 0o700)
			if r.plant != nil {
				r.plant()
			}
			in := in
			in.Files = slices.Clone(in.Files)
			if r.change != nil {
				r.change(&in)
			}
			kit.Fails(t, "PutFolder", kit.Err(f.PutFolder(t.Context(), in)), r.want)
			for _, name := range append(r.stays, ".vaultd/incoming/theirs") {
				kit.Want(t, "the error of Lstat", kit.Err(os.Lstat(path+"/"+name)), nil)
			}
			kit.Fails(t, "a folder is shown", kit.Err(os.Lstat(path+"/"+extractName)))
		})
	}
	for _, bad := range []string{"", "..", "a/b", "a\x00", ".vaultd", strings.Repeat("x", 300)} {
		in.Name = bad
		kit.Fails(t, fmt.Sprintf("%q accepted", bad), kit.Err(f.PutFolder(t.Context(), in)))
	}
	in.Name = extractName
	for _, bad := range []string{"", "..", "../x", ".hidden", "_REASON.txt", "metadata.json", " a", "a ", "a.", "~a", "a:b", "a\nb", strings.Repeat("x", 300)} {
		in.Files[0].Path = bad
		kit.Fails(t, fmt.Sprintf("file %q accepted", bad), kit.Err(f.PutFolder(t.Context(), in)))
	}
}

// The end of the program ends the writing of a large file; nothing is shown, and the next call begins anew.
func TestPutFolder_EndsInTheMiddle(t *testing.T) {
	path, f := opened(t)
	in := incomingOf(extractName, "first", "second")
	ctx, stop := context.WithCancel(t.Context())
	whole := in.Files[1].Open
	in.Files[1].Open = func() (io.ReadCloser, error) { stop(); return whole() }
	kit.Fails(t, "PutFolder", kit.Err(f.PutFolder(ctx, in)), context.Canceled)
	kit.Want(t, "folders shown", len(visible(t, path)), 0)
	in.Files[1].Open = whole
	kit.Want(t, "the error of PutFolder", kit.Err(f.PutFolder(t.Context(), in)), nil)
	if got, _ := os.ReadFile(path + "/" + extractName + "/0002-a.zip"); !bytes.Equal(got, []byte("second")) {
		t.Errorf("%q, want got = %v", got, []byte("second"))
	}
}

// Each file is synced before it has its name, the sidecar after the others, and the folder's names before the folder is shown.
func TestPutFolder_I5_OrderOnDisk(t *testing.T) {
	cfg := config(share(t))
	var ops []string
	cfg.Hook = func(op, name string, do func() error) error {
		if op == "sync" || op == "rename" || op == "syncdir" {
			if op == "syncdir" {
				name = name[strings.LastIndex(name, "/")+1:]
			}
			ops = append(ops, op+" "+name)
		}
		return do()
	}
	f := open(t, cfg)
	ops = nil
	in := incomingOf(extractName, "first", "second")
	kit.Value(f.PutFolder(t.Context(), in))(t)
	want := []string{"sync 0001-a.zip", "rename 0001-a.zip", "sync 0002-a.zip", "rename 0002-a.zip", "sync metadata.json", "rename metadata.json",
		"syncdir " + in.Key.String(), "rename " + extractName, "syncdir in", "syncdir incoming"}
	at := slices.Index(ops, want[0])
	kit.Check(t, at >= 0 && slices.Equal(ops[at:], want), "%q, want at >= 0, ops[at:] = %v", ops, want)
}

// I12: a look names what was changed, removed or added, and reads only the files
// that changed since the last look, or all when it is their turn.
func TestLook_I12_NamesWhatDiffers(t *testing.T) {
	secretly := func(dir string) error {
		return os.WriteFile(dir+"/rechnung.pdf", []byte("RECHNUNG.pdf"), 0o660) // of the same size
	}
	later, earlier := Look{ChangedSince: time.Now().Add(time.Hour)}, Look{ChangedSince: time.Now().Add(-time.Hour)}
	type row struct {
		change func(dir string) error
		look   Look
		want   string
	}
	kit.Rows(t, map[string]row{
		"Nothing":        {func(string) error { return nil }, Look{ReadsAll: true}, ""},
		"Missing":        {func(dir string) error { return os.Remove(dir + "/rechnung.pdf") }, later, "rechnung.pdf is missing"},
		"FolderMissing":  {func(dir string) error { return os.RemoveAll(dir + "/sub") }, later, "sub/deep/b.pdf is missing, sub/übersicht.pdf is missing"},
		"Longer":         {func(dir string) error { return os.WriteFile(dir+"/sub/deep/b.pdf", []byte("long"), 0o660) }, later, "sub/deep/b.pdf has another size than when it was archived"},
		"Added":          {func(dir string) error { return os.WriteFile(dir+"/sub/neu.pdf", nil, 0o660) }, later, "sub/neu.pdf was not archived"},
		"ChangedSince":   {secretly, earlier, "rechnung.pdf has another content than when it was archived"},
		"ItsTurn":        {secretly, Look{ChangedSince: later.ChangedSince, ReadsAll: true}, "rechnung.pdf has another content than when it was archived"},
		"NotItsTurn":     {secretly, later, ""},
		"LeftByAnEditor": {func(dir string) error { return os.WriteFile(dir+"/sub/~$b.docx", []byte("x"), 0o660) }, earlier, ""},
		"LeftByASystem": {func(dir string) error {
			return errors.Join(os.Mkdir(dir+"/@eaDir", 0o770), os.WriteFile(dir+"/@eaDir/x.pdf", nil, 0o660))
		}, earlier, ""},
		"LinkForItself": {func(dir string) error {
			return errors.Join(os.Rename(dir+"/rechnung.pdf", dir+"/../r"), os.Symlink(dir+"/../r", dir+"/rechnung.pdf"))
		}, earlier, "rechnung.pdf is a link or another thing that was not archived"},
		"LinkForAnOuter": {func(dir string) error {
			return errors.Join(os.Rename(dir+"/sub", dir+"/../s"), os.Symlink(dir+"/../s", dir+"/sub"))
		}, earlier, "sub is a link or another thing that was not archived"},
		"FolderForAnItem": {func(dir string) error {
			return errors.Join(os.Remove(dir+"/rechnung.pdf"), os.Mkdir(dir+"/rechnung.pdf", 0o770))
		}, earlier, "rechnung.pdf is missing"},
	}, func(t *testing.T, row row) {
		path := share(t)
		_, rel, d := kept(t, path)
		f := open(t, config(path))
		kit.Must(t, row.change(filepath.Join(path, rel)))
		dir := kit.Value(f.OpenKept(rel))(t)
		defer dir.Close()
		found := kit.Value(LookAtKept(t.Context(), dir, rel, d, row.look))(t)
		var words []string
		for _, d := range found {
			words = append(words, d.Path+" "+d.What)
		}
		kit.Want(t, "differences", strings.Join(words, ", "), row.want)
	})
}

// I12: only a folder that is not there is missing. What cannot be looked at is an
// error of its own.
func TestLook_I12_WhatIsMissing(t *testing.T) {
	kit.Rows(t, map[string]func(dir string) error{
		"Removed": os.RemoveAll,
		"Month":   func(dir string) error { return os.RemoveAll(filepath.Dir(dir)) },
		"File":    func(dir string) error { return errors.Join(os.RemoveAll(dir), os.WriteFile(dir, nil, 0o600)) },
		"MonthLink": func(dir string) error {
			m := filepath.Dir(dir)
			return errors.Join(os.Rename(m, m+"x"), os.Symlink(m+"x", m))
		},
	}, func(t *testing.T, change func(dir string) error) {
		path := share(t)
		_, rel, _ := kept(t, path)
		f := open(t, config(path))
		kit.Must(t, change(filepath.Join(path, rel)))
		kit.Fails(t, "open", kit.Err(f.OpenKept(rel)), fs.ErrNotExist)
	})
}

// I12: the keys in a mark count where root and vaultd alone could write it.
func TestReadReceiptKeys_I12_OnlyWhatNobodyElseCouldWrite(t *testing.T) {
	many := make([]string, 40)
	for i := range many {
		many[i] = fmt.Sprint("key ", i)
	}
	type row struct {
		keys      []string
		change    func(dir, mark string) error
		want      int
		untrusted bool
		asRoot    bool
	}
	kit.Rows(t, map[string]row{
		"AsWritten":        {keys: []string{"one", "two"}, want: 2},
		"None":             {},
		"MoreThanAreEver":  {keys: many, want: MostReceiptKeys},
		"GroupMayWriteIt":  {keys: []string{"one"}, change: func(_, mark string) error { return os.Chmod(mark, 0o660) }, untrusted: true},
		"GroupMayReplace":  {keys: []string{"one"}, change: func(dir, _ string) error { return os.Chmod(dir, 0o770) }, untrusted: true},
		"OthersMayReplace": {keys: []string{"one"}, change: func(dir, _ string) error { return os.Chmod(dir, 0o702) }, untrusted: true},
		"FileOfAnother":    {keys: []string{"one"}, change: func(_, mark string) error { return os.Chown(mark, 4711, -1) }, untrusted: true, asRoot: true},
		"FolderOfAnother":  {keys: []string{"one"}, change: func(dir, _ string) error { return os.Chown(dir, 4711, -1) }, untrusted: true, asRoot: true},
	}, func(t *testing.T, row row) {
		if row.asRoot && os.Geteuid() != 0 {
			kit.Missing(t, "root, to make a file of another user")
		}
		path := t.TempDir()
		f := kit.Value(Open(Config{Path: path, Name: "acme", LedgerID: "L1", Environment: "test", Epoch: 1, ReceiptKeys: row.keys}))(t)
		kit.Must(t, f.Close())
		dir := filepath.Join(path, vaultdDir)
		if row.change != nil {
			kit.Must(t, row.change(dir, filepath.Join(dir, markFile)))
		}
		keys, err := ReadReceiptKeys(path)
		_, untrusted := errors.AsType[*UntrustedKeysError](err)
		kit.Check(t, untrusted == row.untrusted && (err == nil || untrusted), "%v, want untrusted %v", err, row.untrusted)
		kit.Check(t, len(keys) == row.want && slices.Equal(keys, row.keys[:row.want]), "keys %q, want the first %d", keys, row.want)
	})
}

// A ledger that was rebuilt, or that is the first with keys, writes its keys
// into the mark of a folder that is its own.
func TestOpen_I12_TheMarkFollowsTheKeys(t *testing.T) {
	path := t.TempDir()
	for _, keys := range [][]string{nil, {"one"}, {"two", "one"}} {
		f := kit.Value(Open(Config{Path: path, Name: "acme", LedgerID: "L1", Environment: "test", Epoch: 1, ReceiptKeys: keys}))(t)
		kit.Must(t, f.Close())
		found := kit.Value(ReadReceiptKeys(path))(t)
		kit.Want(t, "keys", fmt.Sprint(found), fmt.Sprint(keys))
	}
}
