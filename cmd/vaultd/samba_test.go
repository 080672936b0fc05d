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
	kit.Waits(t, 10, "a slow copy over a real share")
	needsSamba(t)
	emu, s := served(t, emulator.Config{ArchiveMin: 100 * time.Millisecond, ArchiveMax: 500 * time.Millisecond}, fast+"\ntime_zone: Europe/Berlin")
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
	kit.Want(t, "exit", p.stop(t), 0)
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
	kit.Await(h.t, "the copy to begin", func() bool { return there("Neuer Ordner/rechnung.pdf") })
	h.mustSMB("acme", `rename "Neuer Ordner" "Wagner 5"`)
	h.mustSMB("acme", `put slow/metadata.json "Wagner 5\metadata.json"`)
	for at := first; at < len(content); at += step {
		write(at, min(at+step, len(content)))
		time.Sleep(100 * time.Millisecond) // so slow is the line
	}
	kit.Check(h.t, there("Wagner 5"),
		"Wagner 5 was taken in the middle of its copy, want it left while the file is open")
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
	loc := kit.Value(time.LoadLocation("Europe/Berlin"))(t)
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
	kit.Need(h.t, err == nil && len(claimed) == 1, "%q, %v, want no error, len(claimed) = 1", claimed, err)
	h.must(os.Chmod(claimed[0], 0o660))
	out, err := exec.Command("chmod", "-R", "g+rwX", filepath.Join(s.dir, "acme/Alt 1")).CombinedOutput()
	kit.Need(h.t, err == nil, "%v: %s", err, out)
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
		out, _ := h.smb("acme", command)
		kit.Check(h.t, strings.Contains(out, "NT_STATUS_"), "a clerk can %s: %s", command, out)
	}
	out, err := h.smb("acme", "ls")
	kit.Check(h.t, err == nil && !strings.Contains(out, ".vaultd"), "a clerk sees .vaultd: %s, %v", out, err)
	mv := exec.Command("mv", ".vaultd", "mine") // on the server itself, where nothing is hidden
	mv.Dir = filepath.Join(s.dir, "acme")
	mv.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uint32(h.id(h.clerk.Uid)), Gid: uint32(h.id(h.clerk.Gid))}}
	kit.Fails(h.t, "a clerk can move .vaultd", kit.Err(mv.CombinedOutput()))
	for name, want := range map[string]os.FileMode{
		"_rejected": os.ModeDir | os.ModeSetgid | 0o770, "_archived": os.ModeDir | os.ModeSetgid | os.ModeSticky | 0o770,
		"_STATUS.txt": 0o640, "_duplicates/Müller 4711/_REASON.txt": 0o640,
	} {
		info := kit.Value(os.Lstat(filepath.Join(s.dir, "acme", name)))(h.t)
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
	l, closeLedger, err := statedir.OpenLedger(filepath.Join(s.dir, "state"), nil, nil)
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
		entries := kit.Value(os.ReadDir(filepath.Join(s.dir, drop)))(h.t)
		var names []string
		for _, e := range entries {
			names = append(names, e.Name())
		}
		got := strings.Join(names, " ")
		kit.Check(t, got == want, "%s holds %s", drop, got)
		claimed, err := os.ReadDir(filepath.Join(s.dir, drop, ".vaultd/claimed"))
		kit.Check(t, err == nil && len(claimed) <= 0, "%s: claimed %v, %v", drop, claimed, err)
	}
	stale, err := filepath.Glob(filepath.Join(s.dir, "acme/_archived/*/*/_REASON.txt"))
	kit.Check(t, err == nil && len(stale) <= 0, "an archived folder says that it is not: %q, %v", stale, err)
}

// A clerk moves PDFs over a real share into a drop of single files: whole ones, a slow one, one that is cut off, a Word file, a folder.
func TestSamba_PDFsAreDeliveredOnce(t *testing.T) {
	kit.Long(t, "a clerk's day with PDFs on a real share")
	kit.Waits(t, 10, "a slow copy over a real share")
	needsSamba(t)
	emu, s := served(t, emulator.Config{ArchiveMin: 100 * time.Millisecond, ArchiveMax: 500 * time.Millisecond}, fast+"\ntime_zone: Europe/Berlin")
	text := kit.Value(os.ReadFile(s.config))(t)
	pdf := strings.Replace(string(text), "vault: BETA, settle: 300ms", "route: pdf, receiving: ap@in.example, notify: clerk@acme.example, settle: 800ms", 1) +
		"pdf: {base_url: " + s.service + ", auth: {method: basic, username: demo, secret_file: " + s.dir + "/secret}}\n"
	kit.Must(t, os.WriteFile(s.config, []byte(pdf), 0o640))
	h := newShare(t, s)
	p := h.run(s)

	h.says("beta", `Nothing to put right`)
	whole := func(text string) []byte { return []byte("%PDF-1.7\n" + text + "\n%%EOF\n") }
	for name, content := range map[string][]byte{"Müller 7.pdf": whole("seven"), "again.pdf": whole("seven"), "scan8.PDF": whole("eight"),
		"brief.docx": []byte("PK\x03\x04 a letter"), "cut.pdf": []byte("%PDF-1.7\n")} {
		h.must(os.WriteFile(filepath.Join(h.local, name), content, 0o644))
	}
	h.mustSMB("beta", `prompt off; put "Müller 7.pdf"; put scan8.PDF; put brief.docx; put cut.pdf; mkdir Mai`)
	slow := h.slowPDF(s)
	h.says("beta", `(?s)PLEASE FIX \(3\).*_rejected\\brief\.docx.*Mai +is a folder; this drop takes single PDFs`)
	h.mustSMB("beta", `put again.pdf`)
	h.says("beta", `(?s)again\.pdf`)
	for path, words := range map[string]string{`_rejected\brief.docx\_REASON.txt`: `NOT SENT. "brief.docx" is no PDF. Save it as PDF, then move the PDF back to beta (where _STATUS.txt lies).`,
		`_rejected\cut.pdf\_REASON.txt`: `NOT SENT. "cut.pdf" is no PDF.`} {
		text := h.read("beta", path)
		kit.Check(t, strings.HasPrefix(text, words), "%s: %q, want text that begins with %q", path, text, words)
	}
	kit.Await(t, "the duplicate to come back", func() bool {
		_, err := os.Lstat(filepath.Join(s.dir, "beta/_duplicates/again.pdf/_REASON.txt"))
		return err == nil
	})
	if text := h.read("beta", `_duplicates\again.pdf\_REASON.txt`); !strings.HasPrefix(text, "ALREADY SENT on ") || !strings.Contains(text, `as "Müller 7.pdf". Nothing to do.`) {
		t.Errorf("%q, want text that begins with \"ALREADY SENT on \", text with `as \"Müller 7.pdf\". Nothing to do.`", text)
	}

	// The clerk corrects it in the returned folder, and moves the file alone.
	// All is settled then.
	h.must(os.WriteFile(filepath.Join(h.local, "cut.pdf"), whole("the whole page"), 0o644))
	h.mustSMB("beta", `put cut.pdf "_rejected\cut.pdf\cut.pdf"; rename "_rejected\cut.pdf\cut.pdf" cut.pdf; rmdir Mai`)
	h.says("beta", `(?s)PLEASE FIX \(2\).*_rejected\\brief\.docx`)
	kit.Await(t, "all PDFs to be delivered", func() bool { return len(emu.PDFSlots()) == 4 && filledSlots(emu) == 4 })
	month := filepath.Join(s.dir, "beta/_delivered", time.Now().In(berlin(t)).Format("2006-01"))
	kit.Await(t, "all PDFs to be placed", func() bool {
		placed, err := filepath.Glob(month + "/*/_DELIVERED.txt")
		return err == nil && len(placed) == 4
	})
	kit.Holds(t, "not the whole slow PDF was delivered",
		h.read("beta", `_delivered\`+filepath.Base(month)+`\slow.pdf\_DELIVERED.txt`), hex.EncodeToString(slow[:]))
	for name, want := range map[string]os.FileMode{"_delivered": os.ModeDir | os.ModeSetgid | os.ModeSticky | 0o770, "_rejected/cut.pdf": os.ModeDir | os.ModeSetgid | 0o770, "_rejected/cut.pdf/_REASON.txt": 0o640} {
		info := kit.Value(os.Lstat(filepath.Join(s.dir, "beta", name)))(h.t)
		st := info.Sys().(*syscall.Stat_t)
		kit.Check(t, info.Mode() == want && int(st.Gid) == h.id(h.clerk.Gid), "%s: %v, group %d", name, info.Mode(), st.Gid)
	}
	found := emu.Violations()
	kit.Check(t, len(found) <= 0, "the service complains: %q", found)
	kit.Want(t, "exit", p.stop(t), 0)
}

// filledSlots counts the slots that hold a PDF.
func filledSlots(emu *emulator.Server) (n int) {
	for _, slot := range emu.PDFSlots() {
		if len(slot.PUTs) > 0 {
			n++
		}
	}
	return n
}

// slowPDF copies a PDF so slowly that it looks finished again and again; it is delivered whole. It returns its digest.
func (h *share) slowPDF(s *site) [32]byte {
	h.t.Helper()
	content := append(append([]byte("%PDF-1.7\n"), bytes.Repeat([]byte("a slow page\n"), 200_000)...), "%%EOF\n"...)
	cmd := h.client("beta", `iosize 65536; put - slow.pdf`)
	in, err := cmd.StdinPipe()
	h.must(err)
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	h.must(cmd.Start())
	for at := 0; at < len(content); at += 1 << 19 {
		_, err := in.Write(content[at:min(at+1<<19, len(content))])
		h.must(err)
		time.Sleep(1200 * time.Millisecond) // longer than settle: so slow is the line
		kit.Want(h.t, "taken in the middle of the copy", kit.Err(os.Lstat(filepath.Join(s.dir, "beta/slow.pdf"))), nil)
	}
	h.must(in.Close())
	err = cmd.Wait()
	kit.Need(h.t, err == nil && !strings.Contains(out.String(), "NT_STATUS_"), "put: %v: %s", err, &out)
	return sha256.Sum256(content)
}
