package main_test

import (
	"vaultd/internal/test/kit"

	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"vaultd/internal/emulator"
)

// apartSite is a site with one folder more, whose check is in order.
func apartSite(t *testing.T) *site {
	t.Helper()
	_, url := serveEmulator(t, emulator.Config{})
	s := newSite(t, url, fast)
	for _, err := range []error{os.MkdirAll(filepath.Join(s.dir, "acme/inner"), 0o770), os.MkdirAll(filepath.Join(s.dir, "other/beta"), 0o770),
		os.MkdirAll(filepath.Join(s.dir, "state/spool"), 0o700)} {
		kit.Must(t, err)
	}
	s.edit("path: "+s.dir+"/beta", "after_archive: {action: move, to: "+s.dir+"/old}, path: "+s.dir+"/beta")
	return s
}

// refuses holds check and run against what they must say of two places: key is where the fault stands, and relation how place lies to other.
func (s *site) refuses(key, place, relation, other string) {
	s.t.Helper()
	want := key + ": " + filepath.Join(s.dir, place) + " " + relation + " " + filepath.Join(s.dir, other) + " ("
	for _, command := range []string{"check", "run"} {
		if out, code := s.vaultd(command); code != exitConfig || !strings.Contains(out, want) || !strings.Contains(out, "a link or a mount leads there") {
			s.t.Errorf("%s ends with %d and does not say %q:\n%s", command, code, want, out)
		}
	}
}

// I16, I19: two paths that lead to one folder through links are refused by check and run, each with both names; a path through links that
// leads to a folder of its own is fine.
func TestCheck_I16_I19_DropsReachedByLinks(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct{ link, to, key, place, relation, other string }{
		"SameDrop":      {"beta", "acme", "drops[1].path", "beta", "is the same folder as", "acme"},
		"NestedDrop":    {"beta", "acme/inner", "drops[1].path", "beta", "lies in", "acme"},
		"DropAbove":     {"beta", ".", "drops[1].path", "beta", "holds", "state"},
		"DropIsSpool":   {"beta", "state/spool", "drops[1].path", "beta", "lies in", "state"},
		"DropIsState":   {"beta", "state", "drops[1].path", "beta", "is the same folder as", "state"},
		"ToInDrop":      {"old", "acme/inner", "drops[1].after_archive.to", "old", "lies in", "acme"},
		"ToNotMadeYet":  {"old", "acme/later", "drops[1].after_archive.to", "old", "lies in", "acme"},
		"Apart":         {"beta", "other/beta", "", "", "", ""},
		"ApartNotThere": {"old", "other/later", "", "", "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := apartSite(t)
			link := filepath.Join(s.dir, row.link)
			if row.link == "beta" {
				kit.Must(t, os.Remove(link))
			}
			kit.Must(t, os.Symlink(filepath.Join(s.dir, row.to), link))
			if row.key != "" {
				s.refuses(row.key, row.place, row.relation, row.other)
				return
			}
			if out, code := s.vaultd("check"); code != 0 {
				t.Errorf("check ends with %d:\n%s", code, out)
			}
		})
	}
}

// The same with bind mounts of one file system, also where only a folder above or below is mounted.
func TestCheck_I16_I19_DropsReachedByMounts(t *testing.T) {
	if !apart(t) {
		return
	}
	s := apartSite(t)
	if out, code := s.vaultd("check"); code != 0 {
		t.Fatalf("check ends with %d:\n%s", code, out)
	}
	for name, row := range map[string]struct{ from, to, key, place, relation, other string }{
		"SameDrop":   {"acme", "beta", "drops[1].path", "beta", "is the same folder as", "acme"},
		"NestedDrop": {"acme/inner", "beta", "drops[1].path", "beta", "lies in", "acme"},
		"DropAbove":  {".", "beta", "drops[1].path", "beta", "holds", "state"},
		"Spool":      {"beta", "state/spool", "drops[1].path", "beta", "is the same folder as", "state/spool"},
		"StateDir":   {"state", "beta", "drops[1].path", "beta", "is the same folder as", "state"},
	} {
		t.Run(name, func(t *testing.T) {
			at := filepath.Join(s.dir, row.to)
			kit.Must(t, unix.Mount(filepath.Join(s.dir, row.from), at, "", unix.MS_BIND, ""))
			defer unix.Unmount(at, unix.MNT_DETACH)
			s.refuses(row.key, row.place, row.relation, row.other)
		})
	}
}
