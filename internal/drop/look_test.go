package drop

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"vaultd/internal/test/kit"
)

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
