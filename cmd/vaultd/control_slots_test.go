// These tests are inside the package: they make up commands that hang and peers
// of other users.
package main

import (
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"vaultd/internal/test/kit"
)

// asPeer lets the test say who connects next: whatever it put in last.
type asPeer struct {
	mu    sync.Mutex
	who   peer
	asked int // how often; guarded by mu
}

func (a *asPeer) set(p peer) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.who = p
}

func (a *asPeer) of(*net.UnixConn) (peer, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.asked++
	return a.who, nil
}

// times is how many connections were asked who they are.
func (a *asPeer) times() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.asked
}

// Sixteen commands that hang, of members or of root himself, and connections that never say a word, do not keep an
// administrator from asking how it stands.
func TestControl_I21_StuckCommandsLeaveRoomForStatus(t *testing.T) {
	var (
		root, member = peer{uid: 0}, peer{uid: 1001, groups: []uint32{2000}}
		who          asPeer
	)
	began := make(chan struct{}, 100)
	path, _ := listen(t, &commandServer{
		uid: 990, groups: []uint32{2000}, peerOf: who.of,
		execute: func(ctx context.Context, _ peer, req controlRequest, _ io.Reader, stdout, _ io.Writer) int {
			if req.Args[0] == "list" {
				began <- struct{}{}
				<-ctx.Done()
			}
			fmt.Fprint(stdout, "fine")
			return exitDone
		},
	})
	// The place of one that was answered is given back a moment after its answer.
	status := func(p peer) (code int) {
		who.set(p)
		for until := time.Now().Add(10 * time.Second); time.Now().Before(until); runtime.Gosched() {
			if _, _, code = FramesAt(t, path, `{"args":["status"]}`+"\n"); code != exitTemporary {
				break
			}
		}
		return code
	}
	fill := func(p peer) {
		who.set(p)
		for taken := 0; taken < maxCommands; {
			conn, refused := stick(t, path, `{"args":["list"]}`+"\n"), make(chan struct{})
			go func() {
				if n, _ := conn.Read(make([]byte, 1)); n > 0 {
					close(refused)
				}
			}()
			select {
			case <-began:
				taken++
			case <-refused:
			}
		}
	}
	fill(member)
	if _, _, code := FramesAt(t, path, `{"args":["list"]}`+"\n"); code != exitTemporary {
		t.Error("one too many:", code)
	}
	if a, b := status(root), status(member); a != exitDone || b != exitDone {
		t.Errorf("members are stuck: status gives root %d and a member %d", a, b)
	}
	who.set(member)
	var silent []net.Conn
	for before := who.times(); len(silent) < maxArriving; {
		silent = append(silent, stick(t, path, "{"))
		for who.times() < before+len(silent) { // the next to be asked is root
			runtime.Gosched()
		}
	}
	if code := status(root); code != exitDone {
		t.Error("members say nothing: status gives root", code)
	}
	for _, c := range silent {
		c.Close()
	}
	fill(root)
	for range 3 * maxReserve { // one after the other: each gives its place back
		code := status(root)
		kit.Need(t, code == exitDone, "root's own commands are stuck: status gives %v", code)
	}
	if code := status(peer{uid: 1002, groups: []uint32{100}}); code != exitRights {
		t.Error("a stranger:", code)
	}
}

// stick connects and says something, and then nothing more.
func stick(t *testing.T, path, said string) net.Conn {
	t.Helper()
	conn := kit.Value(net.Dial("unix", path))(t)
	t.Cleanup(func() { conn.Close() })
	io.WriteString(conn, said)
	return conn
}

// A list that comes slowly, or never, gives its slot back. While one is there, another one is refused in words, and no other command is
// held up: neither of the same users nor of the others.
func TestControl_I21_AListThatComesSlowly(t *testing.T) {
	t.Parallel()
	var who asPeer
	who.set(peer{uid: 1001, groups: []uint32{2000}})
	began, got := make(chan struct{}, 100), make(chan error, 1)
	path, _ := listen(t, &commandServer{
		uid: 990, groups: []uint32{2000}, peerOf: who.of, patient: 2 * time.Second,
		execute: func(_ context.Context, _ peer, _ controlRequest, input io.Reader, _, _ io.Writer) int {
			began <- struct{}{}
			_, err := io.Copy(io.Discard, input)
			if err != nil {
				got <- err
				return exitData
			}
			return exitDone
		},
	})
	slow := stick(t, path, `{"args":["audit"],"input":1000}`+"\n"+"some of it")
	<-began
	list := func() (string, int) {
		_, errs, code := FramesAt(t, path, `{"args":["audit"],"input":3}`+"\nabc")
		return errs, code
	}
	errs, code := list()
	kit.Check(t, code == exitTemporary && strings.Contains(errs, "another report that compares with a list"),
		"a second list: exit %d, %s", code, errs)
	_, errs, code = FramesAt(t, path, `{"args":["audit"]}`+"\n")
	kit.Check(t, code == exitDone, "a report without a list: exit %d, %s", code, errs)
	who.set(peer{uid: 0})
	errs, code = list()
	kit.Check(t, code == exitDone, "a list of root: exit %d, %s", code, errs)
	who.set(peer{uid: 1001, groups: []uint32{2000}})
	select {
	case err := <-got:
		kit.Fails(t, "the slow one", err, os.ErrDeadlineExceeded)
	case <-time.After(30 * time.Second):
		t.Fatal("the slow one keeps its slot")
	}
	if _, err := io.ReadAll(slow); err != nil { // its answer
		t.Error(err)
	}
	errs, code = list()
	for code == exitTemporary && t.Context().Err() == nil { // the slot is given back after the answer
		errs, code = list()
	}
	kit.Check(t, code == exitDone, "a list after it: exit %d, %s", code, errs)
}

// Whatever arrives on the socket is answered with words, soon, and never runs.
func TestControl_I21_HostileRequests(t *testing.T) {
	path, _ := listen(t, &commandServer{execute: func(_ context.Context, _ peer, req controlRequest, _ io.Reader, _, _ io.Writer) int {
		kit.Want(t, "ran", req.Args[0], "list")
		return exitDone
	}})
	kit.Rows(t, map[string]string{
		"Binary":       "\x00\xff\xfe\n",
		"Deep":         strings.Repeat("[", 60_000) + "\n",
		"ManyArgs":     `{"args":["x"` + strings.Repeat(`,""`, 20_000) + "]}\n",
		"HugeWord":     `{"args":["` + strings.Repeat("a", 70_000) + `"]}` + "\n",
		"NoLine":       strings.Repeat("a", maxRequest+10),
		"Null":         "null\n",
		"Number":       `{"args":[1]}` + "\n",
		"OtherKey":     `{"ARGS2":["list"]}` + "\n",
		"EmptyCommand": `{"args":[""]}` + "\n",
		"PathCommand":  `{"args":["../list"]}` + "\n",
		"Escapes":      `{"args":["\u001b[2J"]}` + "\n",
	}, func(t *testing.T, said string) {
		began := time.Now()
		out, errs, code := FramesAt(t, path, said)
		kit.Check(t, code == exitUsage && out == "" && !strings.ContainsAny(errs, "\x1b\x00") && time.Since(began) <= 3*time.Second,
			"exit %d after %v: %q %q", code, time.Since(began), out, errs)
	})
}
