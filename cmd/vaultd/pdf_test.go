package main_test

import (
	"vaultd/internal/test/kit"

	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"vaultd/internal/emulator"
)

// addPDFDrop gives a site a drop of single PDFs.
func (s *site) addPDFDrop(url string) {
	s.t.Helper()
	s.edit("drops:\n", "pdf: {base_url: \""+url+"\", auth: {method: basic, username: demo, secret_file: "+s.dir+"/secret}}\ndrops:\n"+
		"  - {name: scans, path: "+s.dir+"/scans, route: pdf, receiving: ap@in.example, notify: clerk@acme.example, settle: 300ms, rescan: 1s}\n")
	kit.Must(s.t, os.Mkdir(filepath.Join(s.dir, "scans"), 0o770))
}

// dropPDF drops one file as a scanner does.
func (s *site) dropPDF(name string, pages int) {
	s.t.Helper()
	to := filepath.Join(s.dir, "scans", name)
	kit.Must(s.t, os.WriteFile(to+".part", fmt.Appendf(nil, "%%PDF-1.4\n%% %s, %d pages\n%%%%EOF\n", name, pages), 0o660))
	kit.Must(s.t, os.Rename(to+".part", to))
}

// pdfStates returns the states of all entries of the drop of PDFs, by name.
func (s *site) pdfStates() map[string]string {
	s.t.Helper()
	out, code := s.vaultd("list", "--json")
	if code != 0 {
		s.t.Fatalf("list: exit %d: %s", code, out)
	}
	states := map[string]string{}
	for line := range strings.Lines(out) {
		var row struct{ Drop, Folder, State string }
		if err := json.Unmarshal([]byte(line), &row); err != nil {
			s.t.Fatal(err, line)
		}
		if row.Drop == "scans" {
			states[row.Folder] = row.State
		}
	}
	return states
}

func (s *site) awaitPDF(name, state string) {
	s.t.Helper()
	for until := time.Now().Add(time.Minute); s.pdfStates()[name] != state; time.Sleep(200 * time.Millisecond) {
		if time.Now().After(until) {
			s.t.Fatalf("%s is %q, want %s", name, s.pdfStates()[name], state)
		}
	}
}

// The real program is killed while the service reads a PDF and answers nothing. Nobody can tell what the service did with it: it waits for a
// person, who releases it, and then it is delivered, flagged for ever. The others are delivered once.
func TestPDF_I2_KilledDuringAnUpload(t *testing.T) {
	t.Parallel()
	emu, url := serveEmulator(t, emulator.Config{Faults: emulator.Faults{Hook: func(op string, n int) emulator.Fault {
		if op == "pdf-upload" && n == 3 {
			return emulator.Fault{DelayAfter: time.Hour} // stored, and never answered
		}
		return emulator.Fault{}
	}}})
	s := newSite(t, url, fast)
	s.addPDFDrop(url)
	p := s.spawn("run")
	for _, name := range []string{"a.pdf", "b.pdf"} {
		s.dropPDF(name, 1)
		s.awaitPDF(name, "delivered")
	}
	s.dropPDF("c.pdf", 2)
	s.awaitPDF("c.pdf", "sending")
	p.kill(t)
	p = s.start("run")
	s.awaitPDF("c.pdf", "quarantined")
	if slots := emu.PDFSlots(); len(slots) != 3 {
		t.Errorf("%d slots were asked for", len(slots))
	}
	if out, _ := s.vaultd("why", "c.pdf"); !strings.Contains(out, "delivery-unknown") && !strings.Contains(out, "cannot be asked") {
		t.Errorf("why says\n%s", out)
	}
	for _, slot := range emu.PDFSlots() {
		for _, put := range slot.PUTs {
			kit.Must(t, emu.ReleasePDF(slot.Receiving, put.SHA256))
		}
	}
	if out, code := s.vaultd("release", "c.pdf", "--reason", "it is not in the accounts-payable system"); code != 0 {
		t.Fatalf("release: exit %d: %s", code, out)
	}
	s.awaitPDF("c.pdf", "delivered")
	if out, _ := s.vaultd("show", "c.pdf"); !strings.Contains(out, "possibly ") {
		t.Errorf("show does not say that it may be there twice:\n%s", out)
	}
	if out, code := s.vaultd("verify", "--whole"); code != 0 {
		t.Errorf("verify: exit %d: %s", code, out)
	}
	for _, v := range emu.Violations() {
		t.Errorf("the service saw: %s", v)
	}
	if code := p.stop(t); code != 0 {
		t.Errorf("exit %d", code)
	}
}

// An address that the service refuses stops the drop and nothing else; a corrected configuration lets what waits go on.
func TestPDF_I24_AddressCorrectedByReload(t *testing.T) {
	t.Parallel()
	emu, url := serveEmulator(t, emulator.Config{ArchiveMax: 100 * time.Millisecond, PDF: emulator.PDF{Receiving: []string{"books@in.example"}}})
	s := newSite(t, url, fast)
	s.addPDFDrop(url)
	p := s.spawn("run")
	s.dropPDF("a.pdf", 1)
	s.dropPDF("b.pdf", 2)
	s.fill(2, 1)
	for until := time.Now().Add(time.Minute); ; time.Sleep(300 * time.Millisecond) {
		out, _ := s.vaultd("status")
		if strings.Contains(out, "receivingEmailAddress") && strings.Contains(out, "none lost") {
			break
		}
		if time.Now().After(until) {
			t.Fatalf("status does not say what is wrong:\n%s", out)
		}
	}
	s.edit("receiving: ap@in.example", "receiving: books@in.example")
	if out, code := s.vaultd("check"); code != 0 {
		t.Fatalf("check: exit %d: %s", code, out)
	}
	p.hup(t)
	s.awaitPDF("a.pdf", "delivered")
	s.awaitPDF("b.pdf", "delivered")
	if out, code := s.vaultd("verify", "--whole"); code != 0 {
		t.Errorf("verify: exit %d: %s", code, out)
	}
	to := slices.CompactFunc(emu.PDFSlots(), func(a, b emulator.PDFSlot) bool { return a.Receiving == b.Receiving })
	if len(to) != 1 || to[0].Receiving != "books@in.example" || len(emu.PDFSlots()) != 2 {
		t.Errorf("the service gave slots %+v", emu.PDFSlots())
	}
}
