package main_test

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"vaultd/internal/emulator"
	"vaultd/internal/present"
	"vaultd/internal/test/kit"
)

// line is the network between vaultd and the service, which can be out of order in many ways.
type line struct {
	t       *testing.T
	to      string
	addr    string
	mu      sync.Mutex
	spoil   func(here, there net.Conn) // guarded by mu; nil: it works
	listens net.Listener               // guarded by mu; nil: refused
	open    map[net.Conn]bool          // guarded by mu
	wg      sync.WaitGroup
}

func newLine(t *testing.T, to string) *line {
	l := &line{t: t, to: to, addr: "127.0.0.1:0", open: map[net.Conn]bool{}}
	l.listen()
	t.Cleanup(func() { l.refuse(); l.wg.Wait() })
	return l
}

// listen takes up the port, the same one each time.
func (l *line) listen() {
	l.t.Helper()
	server := kit.Value(net.Listen("tcp", l.addr))(l.t)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.listens, l.addr = server, server.Addr().String()
	l.wg.Go(func() {
		for {
			c, err := server.Accept()
			if err != nil {
				return
			}
			l.wg.Go(func() { l.carry(c) })
		}
	})
}

// refuse ends every connection and takes no new one.
func (l *line) refuse() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.listens != nil {
		l.listens.Close()
		l.listens = nil
	}
	for c := range l.open {
		c.Close()
	}
}

// set spoils the line from now on; nil mends it.
func (l *line) set(spoil func(here, there net.Conn)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.spoil = spoil
	for c := range l.open { // what was kept open goes on under the new rule
		c.Close()
	}
}

func (l *line) carry(here net.Conn) {
	there, err := net.Dial("tcp", l.to)
	if err != nil {
		here.Close()
		return
	}
	l.mu.Lock()
	l.open[here], l.open[there] = true, true
	spoil := l.spoil
	l.mu.Unlock()
	defer func() {
		l.mu.Lock()
		delete(l.open, here)
		delete(l.open, there)
		l.mu.Unlock()
		here.Close()
		there.Close()
	}()
	if spoil != nil {
		spoil(here, there)
		return
	}
	l.wg.Go(func() { _, _ = io.Copy(there, here); there.Close() })
	_, _ = io.Copy(here, there)
}

// answers says one thing to every request, whatever it is.
func answers(raw string) func(here, there net.Conn) {
	return func(here, _ net.Conn) {
		b := make([]byte, 64<<10)
		for {
			if n, err := here.Read(b); err != nil || !bytes.Contains(b[:n], []byte("HTTP/1.1\r\n")) {
				return
			}
			if _, err := io.WriteString(here, raw); err != nil {
				return
			}
		}
	}
}

// after lets the request through and treats the answer.
func after(treat func(here, there net.Conn)) func(here, there net.Conn) {
	return func(here, there net.Conn) {
		go func() { _, _ = io.Copy(there, here) }() // ends with the connections
		treat(here, there)
	}
}

func gzipBomb() string {
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	block := make([]byte, 1<<20)
	for range 200 {
		_, _ = z.Write(block) // into memory
	}
	_ = z.Close()
	return fmt.Sprintf("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Encoding: gzip\r\nContent-Length: %d\r\n\r\n%s", b.Len(), b.String())
}

// I24, I25: the line between vaultd and the service is out of order in one way after the other. Each time what is wrong
// is told in words, no document is blamed for it, and once the line is mended the documents are archived, once each.
func TestNetwork_I24_LineOutOfOrder(t *testing.T) {
	kit.Long(t, "the faults of a network, one after the other")
	t.Parallel()
	const canary = "S1gnatureCanary0123456789"
	emu, url := serveEmulator(t, emulator.Config{Window: 5 * time.Second, ArchiveMax: 200 * time.Millisecond})
	l := newLine(t, strings.TrimPrefix(url, "http://"))
	s := newSite(t, "http://"+l.addr, "upload: {batch_wait: 100ms, window: 5s}\nstatus: {poll_min: 300ms, poll_max: 1s, unclear_grace: 6s}")
	p := s.begin()
	total := 0
	for _, row := range []struct {
		name  string
		spoil func(here, there net.Conn)
		words string // of a pause; empty: it gets through all the same
	}{
		{"Refused", nil, "connection refused"},
		{"Reset", func(here, _ net.Conn) { _ = here.(*net.TCPConn).SetLinger(0) }, "connection reset by peer"},
		{"SignInPage", answers("HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 30\r\n\r\n<html><title>Sign in</title>..."), "answered with a web page"},
		{"SeeOther", answers("HTTP/1.1 303 See Other\r\nLocation: https://login.example/?next=" + canary + "\r\nContent-Length: 0\r\n\r\n"), "would turn the POST into a GET"},
		{"Elsewhere", answers("HTTP/1.1 307 Temporary Redirect\r\nLocation: https://10.0.0.1/?X-Amz-Signature=" + canary + "\r\nContent-Length: 0\r\n\r\n"), "host 10.0.0.1 refused"},
		{"TooMany", answers("HTTP/1.1 429 Too Many Requests\r\nRetry-After: 1\r\nContent-Length: 0\r\n\r\n"), "429 Too Many Requests"},
		{"GzipBomb", answers(gzipBomb()), "larger than its limit"},
		{"CutAnswers", after(func(here, there net.Conn) { _, _ = io.CopyN(here, there, 150) }), "unexpected EOF"},
		{"MoreThanAnAnswer", after(func(here, there net.Conn) {
			b := make([]byte, 64<<10)
			for {
				n, err := there.Read(b)
				if err != nil {
					return
				}
				_, _ = here.Write(append(b[:n:n], "https://bucket.example/k?X-Amz-Signature="+canary...))
			}
		}), ""},
	} {
		if row.name == "Refused" {
			l.refuse()
		} else {
			l.set(row.spoil)
		}
		s.add("acme", row.name, 2)
		total += 2
		if row.words != "" {
			kit.Await(t, row.name+" to be told", func() bool {
				return slices.ContainsFunc(s.status().Pauses, func(p present.PausedTarget) bool { return strings.Contains(p.Text, row.words) })
			})
			if row.name == "Refused" {
				l.listen()
			}
			l.set(nil)
		}
		kit.Await(t, row.name+" to be over", s.inState("archived", uint64(total)))
		l.set(nil)
	}
	s.ends(p, emu, total)
	kit.Lacks(t, "what a peer said out of turn was logged", p.out.String(), canary)
}

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
