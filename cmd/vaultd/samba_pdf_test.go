package main_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"vaultd/internal/emulator"
	"vaultd/internal/test/kit"
)

// A clerk moves PDFs over a real share into a drop of single files: whole ones, a slow one, one that is cut off, a Word file, a folder.
func TestSamba_PDFsAreDeliveredOnce(t *testing.T) {
	kit.Long(t, "a clerk's day with PDFs on a real share")
	t.Parallel()
	needsSamba(t)
	emu, url := serveEmulator(t, emulator.Config{ArchiveMin: 100 * time.Millisecond, ArchiveMax: 500 * time.Millisecond})
	s := newSite(t, url, fast+"\ntime_zone: Europe/Berlin")
	text, err := os.ReadFile(s.config)
	kit.Must(t, err)
	pdf := strings.Replace(string(text), "vault: BETA, settle: 300ms", "route: pdf, receiving: ap@in.example, notify: clerk@acme.example, settle: 800ms", 1) +
		"pdf: {base_url: " + url + ", auth: {method: basic, username: demo, secret_file: " + s.dir + "/secret}}\n"
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
		if text := h.read("beta", path); !strings.HasPrefix(text, words) {
			t.Errorf("%s: %q, want text that begins with %q", path, text, words)
		}
	}
	waitFor(t, "the duplicate to come back", func() bool {
		_, err := os.Lstat(filepath.Join(s.dir, "beta/_duplicates/again.pdf/_REASON.txt"))
		return err == nil
	})
	if text := h.read("beta", `_duplicates\again.pdf\_REASON.txt`); !strings.HasPrefix(text, "ALREADY SENT on ") || !strings.Contains(text, `as "Müller 7.pdf". Nothing to do.`) {
		t.Errorf("%q, want text that begins with \"ALREADY SENT on \", text with `as \"Müller 7.pdf\". Nothing to do.`", text)
	}

	// The clerk puts it right in the folder that came back, and moves the file alone. Nothing is left to put right then.
	h.must(os.WriteFile(filepath.Join(h.local, "cut.pdf"), whole("the whole page"), 0o644))
	h.mustSMB("beta", `put cut.pdf "_rejected\cut.pdf\cut.pdf"; rename "_rejected\cut.pdf\cut.pdf" cut.pdf; rmdir Mai`)
	h.says("beta", `(?s)PLEASE FIX \(2\).*_rejected\\brief\.docx`)
	waitFor(t, "all PDFs to be delivered", func() bool { return len(emu.PDFSlots()) == 4 && filledSlots(emu) == 4 })
	month := filepath.Join(s.dir, "beta/_delivered", time.Now().In(berlin(t)).Format("2006-01"))
	waitFor(t, "all PDFs to be placed", func() bool {
		placed, err := filepath.Glob(month + "/*/_DELIVERED.txt")
		return err == nil && len(placed) == 4
	})
	if text := h.read("beta", `_delivered\`+filepath.Base(month)+`\slow.pdf\_DELIVERED.txt`); !strings.Contains(text, hex.EncodeToString(slow[:])) {
		t.Errorf("not the whole slow PDF was delivered: %s", text)
	}
	for name, want := range map[string]os.FileMode{"_delivered": os.ModeDir | os.ModeSetgid | os.ModeSticky | 0o770, "_rejected/cut.pdf": os.ModeDir | os.ModeSetgid | 0o770, "_rejected/cut.pdf/_REASON.txt": 0o640} {
		info, err := os.Lstat(filepath.Join(s.dir, "beta", name))
		h.must(err)
		if st := info.Sys().(*syscall.Stat_t); info.Mode() != want || int(st.Gid) != h.id(h.clerk.Gid) {
			t.Errorf("%s: %v, group %d", name, info.Mode(), st.Gid)
		}
	}
	if found := emu.Violations(); len(found) > 0 {
		t.Errorf("the service complains: %q", found)
	}
	if code := p.stop(t); code != 0 {
		t.Errorf("exit %d", code)
	}
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
		if _, err := os.Lstat(filepath.Join(s.dir, "beta/slow.pdf")); err != nil {
			h.t.Errorf("taken in the middle of the copy: %v", err)
		}
	}
	h.must(in.Close())
	if err := cmd.Wait(); err != nil || strings.Contains(out.String(), "NT_STATUS_") {
		h.t.Fatalf("put: %v: %s", err, &out)
	}
	return sha256.Sum256(content)
}
