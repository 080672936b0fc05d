package main_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"vaultd/internal/emulator"
	"vaultd/internal/ledger"
	"vaultd/internal/statedir"
	"vaultd/internal/test/kit"
)

// A clerk's day over a real share, from the first folder to the last, in two vaults.
func TestSamba_AClerksDay(t *testing.T) {
	kit.Long(t, "a clerk's day on a real share")
	t.Parallel()
	needsSamba(t)
	emu, url := serveEmulator(t, emulator.Config{ArchiveMin: 100 * time.Millisecond, ArchiveMax: 500 * time.Millisecond})
	s := newSite(t, url, fast+"\ntime_zone: Europe/Berlin")
	h := newShare(t, s)
	p := h.run(s)

	h.says("acme", `INVOICE ARCHIVE acme +\w{3} \d+ \w{3} \d{4} \d\d:\d\d [A-Z]+\nTEST, NO EVIDENCE[^\n]*\nTime over 10 minutes old\? Call IT\.\n\nNothing to put right`)
	h.manyAtOnce()
	h.slowCopy(s)
	h.faultsAreNamed(s)
	h.correction(s)
	h.nothingToDelete(s)

	h.says("acme", `(?s)Nothing to put right, nothing waiting.*ARCHIVED TODAY \(7\).*DUPLICATE TODAY \(1\)\n  Müller 4711 +archived`)
	h.says("beta", `Nothing to put right, nothing waiting\.\nARCHIVED TODAY \(1\) +last: Straße 1, `)
	if code := p.stop(t); code != 0 {
		t.Errorf("exit %d", code)
	}
	h.nothingLeft(s, emu)
}

// manyAtOnce drops folders as Explorer does, with sub-folders and umlauts, and one of them twice.
func (h *share) manyAtOnce() {
	h.t.Helper()
	h.prepare("Müller 4711", bill("4711"), map[string][]byte{"rechnung.pdf": []byte("%PDF müller"), "Anhänge/Lieferschein Größe.txt": []byte("3 m")})
	h.prepare("Otto 19", bill("19"), map[string][]byte{"rechnung.pdf": []byte("%PDF otto")})
	h.prepare("Straße 1", bill("S-1"), map[string][]byte{"rechnung.pdf": []byte("%PDF beta")})
	h.mustSMB("acme", `recurse on; prompt off; mput "Müller 4711"; mput "Otto 19"`)
	h.mustSMB("beta", `recurse on; prompt off; mput "Straße 1"`)
	h.says("acme", `ARCHIVED TODAY \(2\)`)
	h.mustSMB("acme", `recurse on; prompt off; mput "Müller 4711"`)
	h.says("acme", `DUPLICATE TODAY \(1\)`)
	if text := h.read("acme", `_duplicates\Müller 4711\_REASON.txt`); !strings.HasPrefix(text, "DUPLICATE. These files were archived on ") {
		h.t.Errorf(`%q, want text that begins with "DUPLICATE. These files were archived on "`, text)
	}
}

// slowCopy copies a file so slowly that its folder is renamed under it twice: by the clerk, and by the claim.
func (h *share) slowCopy(s *site) {
	h.t.Helper()
	const first, step = 1 << 19, 1 << 17
	content := bytes.Repeat([]byte("slow copy over the share\n"), 100_000)
	h.prepare("slow", bill("SLOW-1"), nil)
	cmd := h.client("acme", `iosize 65536; mkdir "Neuer Ordner"; cd "Neuer Ordner"; put - rechnung.pdf`)
	in, err := cmd.StdinPipe()
	h.must(err)
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	h.must(cmd.Start())
	write := func(from, to int) {
		_, err := in.Write(content[from:to])
		h.must(err)
	}
	there := func(name string) bool {
		info, err := os.Lstat(filepath.Join(s.dir, "acme", name))
		return err == nil && info.Size() > 0
	}
	write(0, first)
	waitFor(h.t, "the copy to begin", func() bool { return there("Neuer Ordner/rechnung.pdf") })
	h.mustSMB("acme", `rename "Neuer Ordner" "Wagner 5"`)
	h.mustSMB("acme", `put slow/metadata.json "Wagner 5\metadata.json"`)
	for at := first; at < len(content); at += step {
		write(at, min(at+step, len(content)))
		time.Sleep(100 * time.Millisecond) // so slow is the line
	}
	if !there("Wagner 5") {
		h.t.Error("Wagner 5 was taken in the middle of its copy, want it left while the file is open")
	}
	h.must(in.Close())
	if err := cmd.Wait(); err != nil || strings.Contains(out.String(), "NT_STATUS_") {
		h.t.Fatalf("put: %v: %s", err, &out)
	}
	h.says("acme", `ARCHIVED TODAY \(3\) +last: Wagner 5, `)
	text := h.read("acme", `_archived\`+time.Now().In(berlin(h.t)).Format("2006-01")+`\Wagner 5\_RECEIPT.txt`)
	sum := sha256.Sum256(content)
	kit.Holds(h.t, "not the whole file was archived", text, hex.EncodeToString(sum[:]))
}

func berlin(t *testing.T) *time.Location {
	loc, err := time.LoadLocation("Europe/Berlin")
	kit.Must(t, err)
	return loc
}

// faultsAreNamed drops what cannot be taken, reads why, puts it right, and sees it archived.
func (h *share) faultsAreNamed(s *site) {
	h.t.Helper()
	h.prepare("Alt 1", bill("ALT-1"), map[string][]byte{"rechnung.pdf": []byte("%PDF alt")})
	h.mustSMB("stock", `recurse on; prompt off; mput "Alt 1"`)
	h.prepare("Zu 2", bill("ZU-2"), map[string][]byte{"rechnung.pdf": []byte("%PDF zu")})
	h.must(os.Rename(filepath.Join(h.local, "Zu 2/metadata.json"), filepath.Join(h.local, "Zu 2/metadata.json.txt")))
	h.must(os.WriteFile(filepath.Join(h.local, "scan7.pdf"), []byte("%PDF lose"), 0o644))
	h.mustSMB("acme", `recurse on; prompt off; mput "Zu 2"; put scan7.pdf`)
	h.must(os.Chmod(filepath.Join(s.dir, "acme/Zu 2/rechnung.pdf"), 0o600))
	h.says("acme", `(?s)PLEASE FIX \(3\)\n.*  Alt 1 +no right to take it \(owner games, 0755\) since \d\d:\d\d: IT must set the share's masks\n`)
	h.says("acme", `  Zu 2 +has metadata\.json\.txt: rename it to metadata\.json \(Explorer: View > File name extensions\)\n`)
	text := h.says("acme", `  scan7\.pdf +loose file since \d\d:\d\d: put it in a folder\n`)
	h.t.Logf("_STATUS.txt:\n%s", text)

	h.mustSMB("acme", `rename "Zu 2\metadata.json.txt" "Zu 2\metadata.json"; del scan7.pdf`)
	h.says("acme", `  Zu 2 +cannot be read: "rechnung\.pdf" \(owner games, 0600\)\. IT must`)
	claimed, err := filepath.Glob(filepath.Join(s.dir, "acme/.vaultd/claimed/*/Zu 2/rechnung.pdf"))
	if err != nil || len(claimed) != 1 {
		h.t.Fatalf("%q, %v, want no error, len(claimed) = 1", claimed, err)
	}
	h.must(os.Chmod(claimed[0], 0o660))
	if out, err := exec.Command("chmod", "-R", "g+rwX", filepath.Join(s.dir, "acme/Alt 1")).CombinedOutput(); err != nil {
		h.t.Fatalf("%v: %s", err, out)
	}
	h.says("acme", `(?s)Nothing to put right, nothing waiting.*ARCHIVED TODAY \(5\)`)
}

// correction reads why a folder came back, puts it right where it lies and moves it back; a second of the name comes as (2).
func (h *share) correction(s *site) {
	h.t.Helper()
	bad := bill("88")
	bad["amount"] = "1.234,56"
	h.prepare("Huber 88", bad, map[string][]byte{"rechnung.pdf": []byte("%PDF huber")})
	h.mustSMB("acme", `recurse on; prompt off; mput "Huber 88"`)
	h.says("acme", `PLEASE FIX \(1\)\n  _rejected\\Huber 88 +amount [^\n]+\n  \(read _REASON\.txt there\)\n`)
	text := h.read("acme", `_rejected\Huber 88\_REASON.txt`)
	if !strings.HasPrefix(text, "NOT ARCHIVED. metadata.json, line 2, \"amount\"") || !strings.Contains(text, "move this whole folder back to acme (where _STATUS.txt lies)") {
		h.t.Errorf("%q, want text that begins with \"NOT ARCHIVED. metadata.json, line 2, \\\"amount\\\"\", text with \"move this whole folder back to acme (where _STATUS.txt lies)\"", text)
	}
	bad = bill("89")
	delete(bad, "documentType")
	h.prepare("second/HUBER 88", bad, map[string][]byte{"rechnung.pdf": []byte("%PDF other")})
	h.mustSMB("acme", `lcd second; recurse on; prompt off; mput "HUBER 88"`)
	h.says("acme", `PLEASE FIX \(2\)\n  _rejected\\HUBER 88 \(2\) +documentType`)

	h.prepare("Huber 88", bill("88"), nil)
	h.prepare("second/HUBER 88", bill("89"), nil)
	h.mustSMB("acme", `put "Huber 88/metadata.json" "_rejected\Huber 88\metadata.json"; rename "_rejected\Huber 88" "Huber 88"`)
	h.says("acme", `(?s)PLEASE FIX \(1\)\n  _rejected\\HUBER 88 \(2\).*ARCHIVED TODAY \(6\) +last: Huber 88, `)
	h.mustSMB("acme", `put "second/HUBER 88/metadata.json" "_rejected\HUBER 88 (2)\metadata.json"; rename "_rejected\HUBER 88 (2)" "HUBER 88 (2)"`)
	h.says("acme", `ARCHIVED TODAY \(7\) +last: HUBER 88 \(2\), `)
}

// nothingToDelete tries to take away what is vaultd's.
func (h *share) nothingToDelete(s *site) {
	h.t.Helper()
	for _, command := range []string{`rename .vaultd mine`, `rmdir .vaultd`, `deltree .vaultd`, `cd .vaultd`, `rename _archived mine`, `rmdir _archived`} {
		if out, _ := h.smb("acme", command); !strings.Contains(out, "NT_STATUS_") {
			h.t.Errorf("a clerk can %s: %s", command, out)
		}
	}
	if out, err := h.smb("acme", "ls"); err != nil || strings.Contains(out, ".vaultd") {
		h.t.Errorf("a clerk sees .vaultd: %s, %v", out, err)
	}
	mv := exec.Command("mv", ".vaultd", "mine") // on the server itself, where nothing is hidden
	mv.Dir = filepath.Join(s.dir, "acme")
	mv.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uint32(h.id(h.clerk.Uid)), Gid: uint32(h.id(h.clerk.Gid))}}
	if out, err := mv.CombinedOutput(); err == nil {
		h.t.Errorf("a clerk can move .vaultd: %s", out)
	}
	for name, want := range map[string]os.FileMode{
		"_rejected": os.ModeDir | os.ModeSetgid | 0o770, "_archived": os.ModeDir | os.ModeSetgid | os.ModeSticky | 0o770,
		"_STATUS.txt": 0o640, "_duplicates/Müller 4711/_REASON.txt": 0o640,
	} {
		info, err := os.Lstat(filepath.Join(s.dir, "acme", name))
		h.must(err)
		if st := info.Sys().(*syscall.Stat_t); info.Mode() != want || int(st.Gid) != h.id(h.clerk.Gid) || int(st.Uid) != h.id(h.vaultd.Uid) {
			h.t.Errorf("%s: %v, user %d, group %d", name, info.Mode(), st.Uid, st.Gid)
		}
	}
}

// nothingLeft closes the books: every document is archived once, and nothing lies about.
func (h *share) nothingLeft(s *site, emu *emulator.Server) {
	t := h.t
	t.Helper()
	onceEach(t, emu, 8)
	l, closeLedger, err := statedir.OpenLedger(filepath.Join(s.dir, "state"), nil)
	h.must(err)
	defer func() { h.must(closeLedger()) }()
	b := l.Balance()
	if !b.IsBalanced() || b.Seen != 11 || b.States[ledger.Archived] != 8 || b.States[ledger.Rejected] != 2 || b.States[ledger.Duplicate] != 1 {
		t.Errorf("balance: %s", b)
	}
	h.must(l.OpenEntries(func(e ledger.Entry) error {
		t.Errorf("still open: %s %s %s", e.Folder, e.State, e.Source)
		return nil
	}))
	for drop, want := range map[string]string{"acme": ".vaultd _STATUS.txt _archived _duplicates _rejected _template", "beta": ".vaultd _STATUS.txt _archived _template"} {
		entries, err := os.ReadDir(filepath.Join(s.dir, drop))
		h.must(err)
		var names []string
		for _, e := range entries {
			names = append(names, e.Name())
		}
		if got := strings.Join(names, " "); got != want {
			t.Errorf("%s holds %s", drop, got)
		}
		if claimed, err := os.ReadDir(filepath.Join(s.dir, drop, ".vaultd/claimed")); err != nil || len(claimed) > 0 {
			t.Errorf("%s: claimed %v, %v", drop, claimed, err)
		}
	}
	if stale, err := filepath.Glob(filepath.Join(s.dir, "acme/_archived/*/*/_REASON.txt")); err != nil || len(stale) > 0 {
		t.Errorf("an archived folder says that it is not: %q, %v", stale, err)
	}
}
