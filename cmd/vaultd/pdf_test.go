package main_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"vaultd/internal/emulator"
	"vaultd/internal/test/kit"
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
	kit.Need(s.t, code == 0, "list: exit %d: %s", code, out)
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
	kit.Await(s.t, name+" to be "+state, func() bool { return s.pdfStates()[name] == state })
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
	kit.Want(t, "slots were asked for", len(emu.PDFSlots()), 3)
	out, _ := s.vaultd("why", "c.pdf")
	kit.Check(t, strings.Contains(out, "delivery-unknown") || strings.Contains(out, "cannot be asked"), "why says\n%s", out)
	for _, slot := range emu.PDFSlots() {
		for _, put := range slot.PUTs {
			kit.Must(t, emu.ReleasePDF(slot.Receiving, put.SHA256))
		}
	}
	s.must(0, "release", "c.pdf", "--reason", "it is not in the accounts-payable system")
	s.awaitPDF("c.pdf", "delivered")
	out, _ = s.vaultd("show", "c.pdf")
	kit.Check(t, strings.Contains(out, "possibly "), "show does not say that it may be there twice:\n%s", out)
	s.must(0, "verify", "--whole")
	for _, v := range emu.Violations() {
		t.Errorf("the service saw: %s", v)
	}
	kit.Want(t, "exit", p.stop(t), 0)
}

// An address that the service refuses stops the drop and nothing else; a corrected configuration lets what waits go on.
func TestPDF_I24_AddressCorrectedByReload(t *testing.T) {
	t.Parallel()
	emu, s := served(t, emulator.Config{ArchiveMax: 100 * time.Millisecond, PDF: emulator.PDF{Receiving: []string{"books@in.example"}}}, fast)
	s.addPDFDrop(s.service)
	p := s.spawn("run")
	s.dropPDF("a.pdf", 1)
	s.dropPDF("b.pdf", 2)
	s.fill(2, 1)
	kit.Await(t, "status to say what is wrong", func() bool {
		out, _ := s.vaultd("status")
		return strings.Contains(out, "receivingEmailAddress") && strings.Contains(out, "none lost")
	})
	s.edit("receiving: ap@in.example", "receiving: books@in.example")
	s.must(0, "check")
	p.hup(t)
	s.awaitPDF("a.pdf", "delivered")
	s.awaitPDF("b.pdf", "delivered")
	s.must(0, "verify", "--whole")
	to := slices.CompactFunc(emu.PDFSlots(), func(a, b emulator.PDFSlot) bool { return a.Receiving == b.Receiving })
	if len(to) != 1 || to[0].Receiving != "books@in.example" || len(emu.PDFSlots()) != 2 {
		t.Errorf("the service gave slots %+v", emu.PDFSlots())
	}
}
