package daemon

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"vaultd/internal/archive"
	"vaultd/internal/spool"
	"vaultd/internal/statedir"
)

// A link in the place of one of vaultd's own folders is a fault in words, and what it leads to stays as it is.
func TestOpen_I19_AFolderOfItsOwnIsALink(t *testing.T) {
	t.Parallel()
	for _, name := range []string{statedir.SpoolFolder, statedir.DropsFolder} {
		t.Run(name, func(t *testing.T) {
			foreign := t.TempDir()
			key := archive.NewKey(time.Now()).String()
			files := []string{"photo.jpg", "half.tmp", key + ".zip", "." + key + ".zip.tmp"}
			for _, file := range files {
				if err := os.WriteFile(filepath.Join(foreign, file), []byte("theirs"), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			withDaemon(t, nil, func(h *testDaemon) {
				h.stop()
				h.must(<-h.ended)
				h.must(h.d.Close())
				synctest.Wait()
				place := filepath.Join(h.cfg.StateDir, name)
				h.must(os.Rename(place, place+".away"))
				h.must(os.Symlink(foreign, place))
				d, err := Open(h.cfg)
				own, is := errors.AsType[*statedir.OwnFolderError](err)
				if !is || !own.Link || own.Path != place || !strings.Contains(own.Error(), "is a link") ||
					!strings.Contains(own.Advice(), "mount --bind") || !strings.Contains(own.Advice(), "state_dir") {
					t.Errorf("%v", err)
				}
				if err == nil {
					h.must(d.Close())
				}
				if _, err := statedir.OpenFolder(h.cfg.StateDir, name, nil); err == nil {
					t.Error("opened by who does not ask before")
				}
				if _, err := spool.NamelessFile(h.cfg.StateDir); name == statedir.SpoolFolder && err == nil {
					t.Error("a download was written through the link")
				}
				h.must(os.Remove(place))
				h.must(os.Rename(place+".away", place))
				h.d, err = Open(h.cfg)
				h.must(err)
				h.run()
			})
			var left []string
			entries, err := os.ReadDir(foreign)
			for _, e := range entries {
				left = append(left, e.Name())
			}
			slices.Sort(files)
			if err != nil || !slices.Equal(left, files) {
				t.Errorf("left of foreign files %q: %v", left, err)
			}
		})
	}
}

// state_dir itself may be a link: an administrator wrote the path.
func TestOpen_I19_StateDirMayBeALink(t *testing.T) {
	t.Parallel()
	withDaemon(t, nil, func(h *testDaemon) {
		h.stop()
		h.must(<-h.ended)
		h.must(h.d.Close())
		link := filepath.Join(filepath.Dir(h.cfg.StateDir), "link")
		h.must(os.Symlink(h.cfg.StateDir, link))
		h.cfg.StateDir = link
		var err error
		h.d, err = Open(h.cfg)
		h.must(err)
		h.run()
		h.drop("Huber 88", "88", "one", false)
		h.pass()
		h.want("Huber 88 archived")
	})
}

// Only what bears a name of vaultd's own is removed from the spool; the rest is told of once, and stays.
func TestSpool_I19_ForeignFilesStay(t *testing.T) {
	t.Parallel()
	k := archive.NewKey(time.UnixMilli(1)).String()
	foreign := []string{"photo.jpg", "half.tmp", "fetch-.tmp", "fetch-12.tmp.bak", "fetch-012.tmp", "fetch-x.tmp", strings.ToUpper(k) + ".zip", k + ".zip.part", k + ".zip.tmp",
		k + ".tmp", "." + k + ".tmp", ".photo.zip.tmp", k, "new\nline"}
	ours := []string{k + ".zip", "." + k + ".zip.tmp", "fetch-12.tmp"}
	var log bytes.Buffer
	withConfiguredDaemon(t, func(c *Config) {
		dir := filepath.Join(c.StateDir, statedir.SpoolFolder)
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		for _, name := range slices.Concat(foreign, ours) {
			if err := os.WriteFile(filepath.Join(dir, name), []byte("theirs"), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		for _, name := range []string{"folder", archive.NewKey(time.UnixMilli(2)).String() + ".zip"} {
			if err := os.Mkdir(filepath.Join(dir, name), 0o700); err != nil {
				t.Fatal(err)
			}
			foreign = append(foreign, name)
		}
		link := archive.NewKey(time.UnixMilli(3)).String() + ".zip"
		if err := os.Symlink("photo.jpg", filepath.Join(dir, link)); err != nil {
			t.Fatal(err)
		}
		foreign = append(foreign, link)
	}, func(h *testDaemon) {
		h.drop("Huber 88", "88", "one", false)
		h.pass()
		h.want("Huber 88 archived")
		left, err := os.ReadDir(filepath.Join(h.cfg.StateDir, statedir.SpoolFolder))
		h.must(err)
		var names []string
		for _, e := range left {
			names = append(names, e.Name())
		}
		slices.Sort(foreign)
		if !slices.Equal(names, foreign) {
			t.Errorf("left %q, want %q", names, foreign)
		}
		log.Write(h.log.Bytes())
	})
	if n := strings.Count(log.String(), "files that are not vaultd's"); n != 1 || !strings.Contains(log.String(), ".photo.zip.tmp") || !strings.Contains(log.String(), "count=17") {
		t.Errorf("told %d times: %s", n, &log)
	}
}
