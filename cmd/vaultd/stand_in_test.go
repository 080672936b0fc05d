package main

import (
	"bufio"
	"encoding/json"
	"io"
	"net"
	"path/filepath"
	"testing"
)

// standIn answers on the socket of a shelf in place of a daemon, with what
// answer writes and the exit code that it returns.
func (s *shelf) standIn(answer func(out io.Writer) (exit int)) {
	s.t.Helper()
	l, err := net.Listen("unix", filepath.Join(s.cfg.StateDir, "vaultd.sock"))
	if err != nil {
		s.t.Fatal(err)
	}
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
