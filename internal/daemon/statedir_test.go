package daemon

import (
	"bytes"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"vaultd/internal/archive"

	"golang.org/x/sys/unix"
)

// A link in the place of one of vaultd's own folders is a fault in words, and what it leads to stays as it is.
func TestOpen_I19_AFolderOfItsOwnIsALink(t *testing.T) {
	for _, name := range []string{spoolDir, dropsDir} {
		t.Run(name, func(t *testing.T) {
			foreign := t.TempDir()
			key := archive.NewKey(time.Now()).String()
			files := []string{"photo.jpg", "half.tmp", key + ".zip", "." + key + ".zip.tmp"}
			for _, file := range files {
				if err := os.WriteFile(filepath.Join(foreign, file), []byte("theirs"), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			inHouse(t, nil, func(h *house) {
				h.stop()
				h.must(<-h.ended)
				h.must(h.d.Close())
				synctest.Wait()
				place := filepath.Join(h.cfg.StateDir, name)
				h.must(os.Rename(place, place+".away"))
				h.must(os.Symlink(foreign, place))
				d, err := Open(h.cfg)
				own, is := errors.AsType[*OwnFolderError](err)
				if !is || !own.Link || own.Path != place || !strings.Contains(own.Error(), "is a link") ||
					!strings.Contains(own.Advice(), "mount --bind") || !strings.Contains(own.Advice(), "state_dir") {
					t.Errorf("%v", err)
				}
				if err == nil {
					h.must(d.Close())
				}
				if _, err := openOwn(h.cfg.StateDir, name, nil); err == nil {
					t.Error("opened by who does not ask before")
				}
				if _, err := NamelessFile(h.cfg.StateDir); name == spoolDir && err == nil {
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
	inHouse(t, nil, func(h *house) {
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
	k := archive.NewKey(time.UnixMilli(1)).String()
	foreign := []string{"photo.jpg", "half.tmp", "fetch-.tmp", "fetch-12.tmp.bak", "fetch-012.tmp", "fetch-x.tmp", strings.ToUpper(k) + ".zip", k + ".zip.part", k + ".zip.tmp",
		k + ".tmp", "." + k + ".tmp", ".photo.zip.tmp", k, "new\nline"}
	ours := []string{k + ".zip", "." + k + ".zip.tmp", "fetch-12.tmp"}
	var log bytes.Buffer
	inHouseWith(t, func(c *Config) {
		spool := filepath.Join(c.StateDir, spoolDir)
		if err := os.Mkdir(spool, 0o700); err != nil {
			t.Fatal(err)
		}
		for _, name := range slices.Concat(foreign, ours) {
			if err := os.WriteFile(filepath.Join(spool, name), []byte("theirs"), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		for _, name := range []string{"folder", archive.NewKey(time.UnixMilli(2)).String() + ".zip"} {
			if err := os.Mkdir(filepath.Join(spool, name), 0o700); err != nil {
				t.Fatal(err)
			}
			foreign = append(foreign, name)
		}
		link := archive.NewKey(time.UnixMilli(3)).String() + ".zip"
		if err := os.Symlink("photo.jpg", filepath.Join(spool, link)); err != nil {
			t.Fatal(err)
		}
		foreign = append(foreign, link)
	}, func(h *house) {
		h.drop("Huber 88", "88", "one", false)
		h.pass()
		h.want("Huber 88 archived")
		left, err := os.ReadDir(h.d.spool.dir)
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

// What a sweep meets while a fault keeps it from its end is not told of again and again.
func TestSpool_I19_ForeignFilesToldOnce(t *testing.T) {
	s := spoolAt(t, t.TempDir())
	if err := os.WriteFile(filepath.Join(s.dir, "photo.jpg"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	var log bytes.Buffer
	s.log = slog.New(slog.NewTextHandler(&log, nil))
	for range 3 {
		if err := s.sweep(t.Context(), func(archive.Key) (archive.VaultID, bool, error) { return "V", true, nil }); err != nil {
			t.Fatal(err)
		}
	}
	if n := strings.Count(log.String(), "photo.jpg"); n != 1 {
		t.Errorf("told %d times: %s", n, &log)
	}
}

// A planted lock file in the state directory is not opened: what has that content elsewhere is neither written nor cut.
func TestLock_I19_APlantedLockFile(t *testing.T) {
	for name, plant := range map[string]func(precious, lock string) error{"Link": os.Symlink, "HardLink": os.Link, "FIFO": func(_, lock string) error { return unix.Mkfifo(lock, 0o600) }} {
		t.Run(name, func(t *testing.T) {
			dir, other := t.TempDir(), t.TempDir()
			const words = "what is precious to somebody else"
			if err := errors.Join(os.WriteFile(other+"/precious", []byte(words), 0o600), plant(other+"/precious", dir+"/vaultd.lock")); err != nil {
				t.Fatal(err)
			}
			f, err := lock(dir, "vaultd run")
			if err == nil {
				f.Close()
			}
			if err == nil || !strings.Contains(err.Error(), dir+"/vaultd.lock") || !strings.Contains(err.Error(), "remove it") {
				t.Errorf("%v", err)
			}
			if now, err := os.ReadFile(other + "/precious"); err != nil || string(now) != words {
				t.Errorf("written through the link: %q, %v", now, err)
			}
		})
	}
}
