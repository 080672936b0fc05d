package main_test

import (
	"bufio"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"testing"

	"vaultd/internal/test/kit"
)

// standIn answers on the socket of a shelf in place of a daemon, with what
// answer writes and the exit code that it returns.
func (s *shelf) standIn(answer func(out io.Writer) (exit int)) {
	s.t.Helper()
	l := kit.Value(net.Listen("unix", filepath.Join(s.cfg.StateDir, "vaultd.sock")))(s.t)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			if _, err := bufio.NewReader(conn).ReadString('\n'); err == nil {
				frames := json.NewEncoder(conn)
				exit := answer(framed{frames})
				_ = frames.Encode(map[string]int{"exit": exit}) // the client tells
			}
			conn.Close()
		}
	}()
	s.t.Cleanup(func() { l.Close(); <-done })
}

// framed writes each piece of output as the socket's protocol says.
type framed struct{ to *json.Encoder }

func (f framed) Write(b []byte) (int, error) {
	return len(b), f.to.Encode(map[string][]byte{"out": b})
}

// ask runs a command in real time and returns its exit code and what it wrote.
func (s *shelf) ask(t *testing.T, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	stdout, stderr, code = runHere(append([]string{"--config", s.config}, args...)...)
	return code, stdout, stderr
}

// archiveIs lets the commands of a shelf reach an archive that answers with h.
func (s *shelf) archiveIs(h http.HandlerFunc) {
	s.t.Helper()
	srv := httptest.NewServer(h)
	s.t.Cleanup(srv.Close)
	s.edit("https://vault.example", srv.URL)
	s.edit("/etc/vaultd/secret", secretFile(s.t, "demo\n", 0o600))
}

// reach runs a command in real time with the ledger closed: what waits for the network
// cannot wait in a bubble.
func (s *shelf) reach(args ...string) (stdout, stderr string, code int) {
	s.t.Helper()
	kit.Must(s.t, s.ledger.Close())
	stdout, stderr, code = runHere(append([]string{"--config", s.config}, args...)...)
	s.ledger.Open()
	checkOutput(s.t, nil, []byte(stderr))
	return stdout, stderr, code
}
