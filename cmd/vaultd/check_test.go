package main_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.etcd.io/bbolt"
	"golang.org/x/sys/unix"

	"vaultd/internal/emulator"
	"vaultd/internal/ledger"
	"vaultd/internal/ledger/boltledger"
	"vaultd/internal/test/kit"
)

func TestCheck_TroubleAtDrops(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	kit.Must(t, os.WriteFile(file, nil, 0o600))
	for path, want := range map[string]string{
		dir:                        "",
		filepath.Join(dir, "away"): "is not there",
		file:                       "is not a folder",
	} {
		text := strings.NewReplacer("/etc/vaultd/secret", secretFile(t, canary, 0o600), "/srv/invoices/acme-in", path).Replace(smallConfig) + "state_dir: " + t.TempDir() + "\n"
		out, errs, code := runHere("check", "--offline", "--config", writeConfig(t, text))
		said := strings.Contains(out, "LOOK AT  drop acme-in: "+path)
		kit.Check(t, code == exitDone && said == (want != "") && strings.Contains(out, want),
			"%s: exit %d, without %q: %s%s", path, code, want, out, errs)
	}
}

func TestCheck_HastySettle(t *testing.T) {
	for keys, warned := range map[string]bool{"complete: quiet, settle: 2s": true, "complete: quiet, settle: 30s": false, "complete: list, settle: 1s": false} {
		text := strings.NewReplacer("/etc/vaultd/secret", secretFile(t, canary, 0o600), "vault: V-1}", "vault: V-1, "+keys+"}").Replace(smallConfig) + "state_dir: " + t.TempDir() + "\n"
		if out, errs, code := runHere("check", "--offline", "--config", writeConfig(t, text)); code != exitDone || strings.Contains(out, "LOOK AT  drop acme-in: settle is 2s") != warned {
			t.Errorf("%s: exit %d: %s%s", keys, code, out, errs)
		}
	}
}

// I28: a ledger in the form of another version, which run refuses, is named
// with what to do.
func TestCheck_I28_LedgerOfAnotherVersion(t *testing.T) {
	secret, dir := secretFile(t, "s\n", 0o600), t.TempDir()
	path := writeConfig(t, strings.ReplaceAll(smallConfig, "/etc/vaultd/secret", secret)+"state_dir: "+dir+"\n")
	kit.Must(t, boltledger.Create(dir, ledger.Info{ID: "L", Environment: "test", BaseURL: "https://vault.example", Created: time.Now()}))
	for _, key := range []string{"", "form", "schema"} {
		if key != "" {
			db := kit.Value(bbolt.Open(filepath.Join(dir, "ledger.db"), 0o600, nil))(t)
			kit.Must(t, db.Update(func(tx *bbolt.Tx) error { return tx.Bucket([]byte("meta")).Put([]byte(key), []byte("99")) }))
			kit.Must(t, db.Close())
		}
		out, errs, code := runHere("check", "--offline", "--config", path)
		kit.Check(t, code == exitDone && strings.Count(out, "LOOK AT  state_dir: ") == min(len(key), 1), "%q changed: exit %d, %s%s, want one line about state_dir: %t", key, code, out, errs, key != "")
	}
}

// A drop whose retention is not known is named; one whose is known is not.
func TestCheck_RetentionThatIsNotKnown(t *testing.T) {
	secret := filepath.Join(t.TempDir(), "secret")
	kit.Must(t, os.WriteFile(secret, []byte("s\n"), 0o600))
	text := strings.NewReplacer("/etc/vaultd/secret", secret, "vault: V-1}", "vault: V-1}\n  - {name: beta-in, path: /srv/invoices/beta-in, vault: V-1, retention: 10y}").Replace(smallConfig) +
		"state_dir: " + t.TempDir() + "\n"
	out, errs, code := runHere("check", "--config", writeConfig(t, text))
	if code != 0 || !strings.Contains(out, "LOOK AT  drop acme-in: retention is not known: ") || strings.Contains(out, "drop beta-in: "+"retention is not known: ") {
		t.Errorf("exit %d: %s%s", code, out, errs)
	}
	out, errs, code = runHere("check", "--json", "--config", writeConfig(t, text))
	if code != 0 || !strings.Contains(out, `"drop acme-in: `+"retention is not known: ") || strings.Contains(out, `"drop beta-in: `+"retention is not known: ") {
		t.Errorf("exit %d: %s%s", code, out, errs)
	}
}

// I21, I26: a spool that is too small for a largest package of each vault is named.
func TestCheck_I21_I26_SpoolForEachVault(t *testing.T) {
	for size, named := range map[string]bool{"150MB": true, "200MB": false} {
		text := strings.NewReplacer("/etc/vaultd/secret", secretFile(t, canary, 0o600), "vault: V-1}", "vault: V-1}\n  - {name: beta-in, path: /srv/invoices/beta-in, vault: V-2}\n  - {name: b2, path: /srv/invoices/b2, vault: V-2}").Replace(smallConfig) +
			"spool: {max: " + size + "}\nstate_dir: " + t.TempDir() + "\n"
		out, errs, code := runHere("check", "--offline", "--config", writeConfig(t, text))
		kit.Want(t, size+": exit code "+errs, code, exitDone)
		kit.Want(t, size+": named", strings.Contains(out, "LOOK AT  spool.max: 150 MB are shared by 2 vaults or services."), named)
	}
}

func TestUsage_NamesTheCommandsOwnHelp(t *testing.T) {
	refused(runHere("close", "X"))(t, "close X", exitUsage, `see "vaultd help close"`)
}

// In production, a service on this machine is named, whatever spelling its
// address has; a test environment may have one.
func TestCheck_I26_ProductionOnThisMachine(t *testing.T) {
	for address, isNamed := range map[string]bool{"http://127.0.0.1:8971": true, "https://localhost.:8971": true, "http://[::1]:8971": true, "https://archive.localhost": true, "https://vault.example": false} {
		for _, environment := range []string{"production", "test"} {
			text := strings.Replace(smallConfig, "/etc/vaultd/secret", secretFile(t, canary, 0o600), 1)
			text = strings.Replace(strings.Replace(text, "https://vault.example", address, 1), "service:\n", "service:\n  environment: "+environment+"\n", 1)
			out, errs, code := runHere("check", "--offline", "--config", writeConfig(t, text))
			if code != exitDone || strings.Contains(out, "LOOK AT  service.base_url: "+address+" is on this machine") != (isNamed && environment == "production") {
				t.Errorf("%s, %s: exit %d\n%s%s", environment, address, code, out, errs)
			}
		}
	}
}

// apartSite is a site with one folder more, whose check is in order.
func apartSite(t *testing.T) *site {
	t.Helper()
	_, s := newServed(t, emulator.Config{}, fast)
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
	kit.Rows(t, map[string]struct{ link, to, key, place, relation, other string }{
		"SameDrop":      {"beta", "acme", "drops[1].path", "beta", "is the same folder as", "acme"},
		"NestedDrop":    {"beta", "acme/inner", "drops[1].path", "beta", "lies in", "acme"},
		"DropAbove":     {"beta", ".", "drops[1].path", "beta", "holds", "state"},
		"DropIsSpool":   {"beta", "state/spool", "drops[1].path", "beta", "lies in", "state"},
		"DropIsState":   {"beta", "state", "drops[1].path", "beta", "is the same folder as", "state"},
		"ToInDrop":      {"old", "acme/inner", "drops[1].after_archive.to", "old", "lies in", "acme"},
		"ToNotMadeYet":  {"old", "acme/later", "drops[1].after_archive.to", "old", "lies in", "acme"},
		"Apart":         {"beta", "other/beta", "", "", "", ""},
		"ApartNotThere": {"old", "other/later", "", "", "", ""},
	}, func(t *testing.T, row struct{ link, to, key, place, relation, other string }) {
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
		ended(s.vaultd("check"))(t, "check", 0)
	})
}

// The same with bind mounts of one file system, also where only a folder above or below is mounted.
func TestCheck_I16_I19_DropsReachedByMounts(t *testing.T) {
	if !apart(t) {
		return
	}
	s := apartSite(t)
	out, code := s.vaultd("check")
	kit.Need(t, code == 0, "check ends with %d:\n%s", code, out)
	kit.Rows(t, map[string]struct{ from, to, key, place, relation, other string }{
		"SameDrop":   {"acme", "beta", "drops[1].path", "beta", "is the same folder as", "acme"},
		"NestedDrop": {"acme/inner", "beta", "drops[1].path", "beta", "lies in", "acme"},
		"DropAbove":  {".", "beta", "drops[1].path", "beta", "holds", "state"},
		"Spool":      {"beta", "state/spool", "drops[1].path", "beta", "is the same folder as", "state/spool"},
		"StateDir":   {"state", "beta", "drops[1].path", "beta", "is the same folder as", "state"},
	}, func(t *testing.T, row struct{ from, to, key, place, relation, other string }) {
		at := filepath.Join(s.dir, row.to)
		kit.Must(t, unix.Mount(filepath.Join(s.dir, row.from), at, "", unix.MS_BIND, ""))
		defer unix.Unmount(at, unix.MNT_DETACH)
		s.refuses(row.key, row.place, row.relation, row.other)
	})
}
