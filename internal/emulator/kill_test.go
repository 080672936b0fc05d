package emulator

import (
	"bufio"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"vaultd/internal/test/kit"
)

// TestServerProcess is no test: it is the server that TestKillLosesNothing kills.
func TestServerProcess(t *testing.T) {
	dir := os.Getenv("EMULATOR_TEST_DIR")
	if dir == "" {
		t.Skip("only as the child of another test")
	}
	s := kit.Value(New(realConfig(dir)))(t)
	ln := kit.Value(net.Listen("tcp", "127.0.0.1:0"))(t)
	fmt.Println("listening on", ln.Addr())
	t.Fatal(http.Serve(ln, s))
}

func realConfig(dir string) Config {
	return Config{Dir: dir, Username: "user", Secret: "s3=cret/+", Vaults: []Vault{{ID: "V1", Name: "Acme"}}}
}

// I5 durability, on the service's side: what was answered before kill -9 is there after it.
func TestKillLosesNothing(t *testing.T) {
	w := &world{T: t, cfg: realConfig(t.TempDir())}
	answered := map[string]bool{} // bumId: its package was accepted
	n := 0
	for round := range 3 {
		base, process := startProcess(t, w.cfg.Dir)
		time.AfterFunc(time.Duration(50+40*round)*time.Millisecond, func() { _ = process.Process.Kill() })
		for alive := true; alive; n++ {
			req := w.request("POST", base+docs, batch(document(n)), "Content-Type: application/json")
			req.SetBasicAuth("user", "s3=cret/+")
			a := wireSend(t, req)
			if alive = a.err == nil; !alive {
				continue
			}
			ticket := w.tickets(a)[0]
			answered[ticket.bumID] = false
			a = wireSend(t, w.request("PUT", ticket.url, zipOf(ticket.bumID)))
			alive = a.err == nil
			answered[ticket.bumID] = a.status == 200
		}
		_ = process.Wait()
	}
	w.restart()
	known := map[string]RegistrationRecord{}
	for _, s := range w.Registrations() {
		known[s.BumID] = s
	}
	stored := 0
	for bumID, accepted := range answered {
		s, ok := known[bumID]
		kit.Check(t, ok && (!accepted || s.SHA256 == digest([]byte(zipOf(bumID)))),
			"%s was answered; known: %+v", bumID, s)
		if accepted {
			stored++
		}
	}
	kit.Check(t, stored != 0, "nothing was stored: the test proves nothing")
	w.wantNoViolations()
}

// startProcess runs a server process and gives its address.
func startProcess(t *testing.T, dir string) (base string, cmd *exec.Cmd) {
	t.Helper()
	cmd = exec.Command(os.Args[0], "-test.run=^TestServerProcess$")
	cmd.Env = append(os.Environ(), "EMULATOR_TEST_DIR="+dir)
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	kit.Must(t, err)
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	line, err := bufio.NewReader(out).ReadString('\n')
	kit.Need(t, err == nil, "server process said %q: %v", line, err)
	return "http://" + strings.TrimSpace(strings.TrimPrefix(line, "listening on ")), cmd
}

// I5 durability, on the service's side: a slot that was answered, and a PDF that was accepted, are there after kill -9.
func TestKillLosesNoPDF(t *testing.T) {
	w := &world{T: t, cfg: realConfig(t.TempDir())}
	answered := map[string]bool{} // bumId: its PDF was accepted
	stored := 0
	for round := range 3 {
		base, process := startProcess(t, w.cfg.Dir)
		time.AfterFunc(time.Duration(50+40*round)*time.Millisecond, func() { _ = process.Process.Kill() })
		for alive := true; alive; {
			req := w.request("POST", base+slots, goodBody, "Content-Type: application/json")
			req.SetBasicAuth("user", "s3=cret/+")
			a := wireSend(t, req)
			if alive = a.err == nil; !alive {
				continue
			}
			ticket := w.slotOf(a)
			answered[ticket.bumID] = false
			a = wireSend(t, w.request("PUT", ticket.url, "%PDF-1.7 "+ticket.bumID))
			alive = a.err == nil
			answered[ticket.bumID] = a.status == 200
		}
		_ = process.Wait()
	}
	w.restart()
	known := map[string]PDFSlot{}
	for _, s := range w.PDFSlots() {
		known[s.BumID] = s
	}
	for bumID, accepted := range answered {
		s, ok := known[bumID]
		kit.Check(t, ok && (!accepted || s.Flows == 1 && s.PUTs[0].SHA256 == digest([]byte("%PDF-1.7 "+bumID))),
			"%s was answered; known: %+v", bumID, s)
		if accepted {
			stored++
		}
	}
	kit.Check(t, stored != 0, "nothing was stored: the test proves nothing")
	w.wantNoViolations()
}
