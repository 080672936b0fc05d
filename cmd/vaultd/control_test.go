// These tests are inside the package: they make up commands and peers, which no
// client can bring about.
package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"vaultd/internal/archive"
	"vaultd/internal/test/kit"
)

// shortDir is a directory whose path leaves room for a socket's name.
func shortDir(t *testing.T) string {
	t.Helper()
	dir := kit.Value(os.MkdirTemp("", "vd"))(t)
	t.Cleanup(func() {
		for _, name := range []string{"spool", "ledger.db", "ledger.head.1", "vaultd.lock", "vaultd.sock", "config.yaml", "."} {
			os.Remove(filepath.Join(dir, name))
		}
	})
	return dir
}

// serveUntilTheEnd runs serve until the test ends and waits for it, then for the socket to be there.
func serveUntilTheEnd(t *testing.T, serve func(context.Context) error, path string) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- serve(ctx) }()
	ended := false
	stop = func() {
		if ended {
			return
		}
		ended = true
		cancel()
		select {
		case err := <-done:
			kit.Check(t, err == nil, "serve: %v", err)
		case <-time.After(10 * time.Second):
			t.Error("serve does not end")
		}
	}
	t.Cleanup(stop)
	kit.Await(t, "the socket", func() bool {
		conn, err := net.Dial("unix", path)
		if err == nil {
			conn.Close()
		}
		return err == nil
	})
	return stop
}

// FramesAt asks on a socket by hand.
func FramesAt(t *testing.T, path, request string) (stdout, stderr string, code int) {
	t.Helper()
	conn := kit.Value(net.Dial("unix", path))(t)
	defer conn.Close()
	conn.SetDeadline(time.Now().Add(10 * time.Second))
	io.WriteString(conn, request)
	var out, errs bytes.Buffer
	for dec := json.NewDecoder(conn); ; {
		var f struct {
			Out, Err []byte
			Exit     *int
		}
		kit.Must(t, dec.Decode(&f))
		out.Write(f.Out)
		errs.Write(f.Err)
		if f.Exit != nil {
			return out.String(), errs.String(), *f.Exit
		}
	}
}

// listen serves commands that the test makes up.
func listen(t *testing.T, s *commandServer) (path string, stop func()) {
	t.Helper()
	path = filepath.Join(shortDir(t), "vaultd.sock")
	if s.peerOf == nil {
		s.peerOf = func(*net.UnixConn) (peer, error) { return peer{uid: 0}, nil }
	}
	return path, serveUntilTheEnd(t, func(ctx context.Context) error {
		l, err := listenControl(path, nil)
		if err != nil {
			return err
		}
		return s.serveClients(ctx, l)
	}, path)
}

func TestControl_I27_OthersAreRefused(t *testing.T) {
	type row struct {
		who peer
		ok  bool
	}
	kit.Rows(t, map[string]row{
		"Root":            {peer{uid: 0}, true},
		"DaemonsOwn":      {peer{uid: 990, groups: []uint32{990}}, true},
		"Member":          {peer{uid: 1001, groups: []uint32{100, 2000}}, true},
		"Stranger":        {peer{uid: 1001, groups: []uint32{100}}, false},
		"UIDIsNoGroup":    {peer{uid: 2000, groups: []uint32{100}}, false},
		"RootsGroupIsNot": {peer{uid: 1001, groups: []uint32{0}}, false},
	}, func(t *testing.T, row row) {
		ran := make(chan peer, 1)
		path, _ := listen(t, &commandServer{
			uid: 990, groups: []uint32{2000}, peerOf: func(*net.UnixConn) (peer, error) { return row.who, nil },
			execute: func(_ context.Context, p peer, _ controlRequest, _ io.Reader, _, _ io.Writer) int {
				ran <- p
				return exitDone
			},
		})
		_, errs, code := FramesAt(t, path, `{"args":["list"],"uid":0}`+"\n")
		if row.ok {
			p := <-ran
			kit.Check(t, code == exitDone && p.uid == row.who.uid, "exit %d, uid %d", code, p.uid)
			return
		}
		kit.Check(t, code == exitRights && strings.Contains(errs, "may not give commands") && len(ran) <= 0,
			"exit %d: %s", code, errs)
	})
}

// A backup has upload addresses that still work, and a reload changes what
// vaultd does. Members of a group, who may give all other commands, get neither.
func TestControl_I27_BackupAndReloadAreForOwners(t *testing.T) {
	for name, row := range map[string]struct {
		who  peer
		want int
	}{
		"Root":       {peer{uid: 0}, exitDone},
		"DaemonsOwn": {peer{uid: 990, groups: []uint32{990}}, exitDone},
		"Member":     {peer{uid: 1001, groups: []uint32{2000}}, exitRights},
	} {
		path, _ := listen(t, &commandServer{
			uid: 990, groups: []uint32{2000}, peerOf: func(*net.UnixConn) (peer, error) { return row.who, nil },
			execute: func(context.Context, peer, controlRequest, io.Reader, io.Writer, io.Writer) int { return exitDone },
		})
		for request, refusal := range map[string]string{`"backup","-"`: "goes to root and vaultd's own user alone", `"reload"`: "root and vaultd's own user alone may"} {
			_, errs, code := FramesAt(t, path, `{"args":[`+request+`]}`+"\n")
			kit.Want(t, name+": exit code", code, row.want)
			if row.want == exitRights {
				kit.Holds(t, name+": refusal", errs, refusal)
			}
		}
	}
}

func TestControl_PeerAsTheKernelKnowsHim(t *testing.T) {
	l := kit.Value(net.ListenUnix("unix", &net.UnixAddr{Name: filepath.Join(shortDir(t), "vaultd.sock"), Net: "unix"}))(t)
	defer l.Close()
	client := kit.Value(net.Dial("unix", l.Addr().String()))(t)
	defer client.Close()
	conn := kit.Value(l.AcceptUnix())(t)
	defer conn.Close()
	p, err := peerOf(conn)
	if err != nil || p.uid != uint32(os.Getuid()) || !slices.Contains(p.groups, uint32(os.Getegid())) {
		t.Errorf("%+v, %v, want no error, p.uid = %v, p.groups with %v", p, err, uint32(os.Getuid()), uint32(os.Getegid()))
	}
	own, err := os.Getgroups()
	for _, g := range own {
		kit.Check(t, err == nil && slices.Contains(p.groups, uint32(g)), "group %d is not in %v, %v", g, p.groups, err)
	}
}

// Whatever a command writes arrives unchanged, and so does its exit code.
func TestControl_BinaryAndExitCode(t *testing.T) {
	all := bytes.Repeat([]byte("\x00\xff\n\r{\"exit\":0}\n\xf0\x9f"), 20_000)
	path, _ := listen(t, &commandServer{execute: func(_ context.Context, _ peer, req controlRequest, _ io.Reader, stdout, stderr io.Writer) int {
		io.WriteString(stderr, strings.Join(req.Args, "|"))
		stdout.Write(all)
		return 42
	}})
	var out, errs bytes.Buffer
	args := []string{"list", "--drop=a b\n", "--", "\u202e"}
	code, err := callControlWithInput(t.Context(), path, controlRequest{Args: args}, nil, &out, &errs)
	kit.Check(t, err == nil && code == 42 && bytes.Equal(out.Bytes(), all) && errs.String() == strings.Join(args, "|"),
		"exit %d, %v, %d bytes, %q", code, err, out.Len(), errs.String())
}

// A client that goes away ends its command, and so does the end of the daemon; neither hangs, whoever reads slowly.
func TestControl_I21_NobodyIsHeldUp(t *testing.T) {
	began, ended := make(chan struct{}, 1), make(chan struct{}, 1)
	wait := &commandServer{execute: func(ctx context.Context, _ peer, _ controlRequest, _ io.Reader, _, _ io.Writer) int {
		began <- struct{}{}
		<-ctx.Done()
		ended <- struct{}{}
		return exitDone
	}}
	flood := &commandServer{execute: func(_ context.Context, _ peer, _ controlRequest, _ io.Reader, stdout, _ io.Writer) int {
		began <- struct{}{}
		for {
			if _, err := stdout.Write(make([]byte, 1<<20)); err != nil {
				ended <- struct{}{}
				return exitDone
			}
		}
	}}
	type row struct {
		s    *commandServer
		stop bool // the daemon, not the client
	}
	kit.Rows(t, map[string]row{"ClientGoesWhileItWaits": {wait, false}, "DaemonStopsWhileItWaits": {wait, true}, "ClientGoesInTheFlood": {flood, false}, "DaemonStopsInTheFlood": {flood, true}}, func(t *testing.T, row row) {
		path, stop := listen(t, row.s)
		conn := kit.Value(net.Dial("unix", path))(t)
		defer conn.Close()
		io.WriteString(conn, `{"args":["list"]}`+"\n")
		<-began
		if row.stop {
			stop()
		} else {
			conn.Close()
		}
		select {
		case <-ended:
		case <-time.After(10 * time.Second):
			t.Fatal("the command goes on")
		}
	})
}

func TestControl_ClientStopsWithItsContext(t *testing.T) {
	began := make(chan struct{}, 1)
	path, _ := listen(t, &commandServer{execute: func(ctx context.Context, _ peer, _ controlRequest, _ io.Reader, _, _ io.Writer) int {
		began <- struct{}{}
		<-ctx.Done()
		return exitDone
	}})
	ctx, cancel := context.WithCancel(t.Context())
	go func() { <-began; cancel() }()
	_, err := callControlWithInput(ctx, path, controlRequest{Args: []string{"list"}}, nil, io.Discard, io.Discard)
	kit.Fails(t, "err", err, context.Canceled)
}

// A stop that comes while the command is still being sent ends it with the same words.
func TestControl_ClientStopsWhileItSends(t *testing.T) {
	path := filepath.Join(shortDir(t), "vaultd.sock")
	l, err := net.Listen("unix", path)
	kit.Must(t, err)
	defer l.Close()
	ctx, cancel := context.WithCancel(t.Context())
	go func() { // reads one byte, and then nothing
		conn, err := l.Accept()
		if err != nil {
			return
		}
		defer conn.Close()
		conn.Read(make([]byte, 1))
		cancel()
		<-t.Context().Done()
	}()
	_, err = callControlWithInput(ctx, path, controlRequest{Args: []string{"report"}}, make([]byte, 8<<20), io.Discard, io.Discard)
	kit.Fails(t, "err", err, context.Canceled)
}

func TestControl_AMistakeEndsTheCommandAlone(t *testing.T) {
	path, _ := listen(t, &commandServer{execute: func(context.Context, peer, controlRequest, io.Reader, io.Writer, io.Writer) int { panic("oops") }})
	for range 2 {
		_, errs, code := FramesAt(t, path, `{"args":["list"]}`+"\n")
		kit.Check(t, code == exitInternal && strings.Contains(errs, "internal error"), "exit %d: %s", code, errs)
	}
}

func TestControl_TooManyAtOnce(t *testing.T) {
	began, release := make(chan struct{}), make(chan struct{})
	path, _ := listen(t, &commandServer{execute: func(context.Context, peer, controlRequest, io.Reader, io.Writer, io.Writer) int {
		began <- struct{}{}
		<-release
		return exitDone
	}})
	for range maxCommands {
		go callControlWithInput(t.Context(), path, controlRequest{Args: []string{"list"}}, nil, io.Discard, io.Discard)
		<-began
	}
	_, errs, code := FramesAt(t, path, `{"args":["list"]}`+"\n")
	kit.Check(t, code == exitTemporary, "exit %d: %s", code, errs)
	close(release)
}

// Input reaches the command that reads it, whole, and one that does not read it ends all the same. Only audit takes any.
func TestControl_Input(t *testing.T) {
	path, _ := listen(t, &commandServer{execute: func(_ context.Context, _ peer, req controlRequest, input io.Reader, stdout, _ io.Writer) int {
		if len(req.Args) > 1 {
			return exitPerson
		}
		b, err := io.ReadAll(input)
		fmt.Fprint(stdout, len(b), " ", archive.Sum(b), " ", err)
		return exitDone
	}})
	for _, size := range []int{0, 1, 300, maxRequest, 3 << 20} {
		input := bytes.Repeat([]byte("x\n"), size)
		var out bytes.Buffer
		code, err := callControlWithInput(t.Context(), path, controlRequest{Args: []string{"audit"}}, input, &out, io.Discard)
		want := fmt.Sprint(len(input), " ", archive.Sum(input), " <nil>")
		kit.Check(t, err == nil && code == exitDone && out.String() == want, "%d: exit %d, %v, %q", size, code, err, &out)
		if code, err := callControlWithInput(t.Context(), path, controlRequest{Args: []string{"audit", "reads nothing"}}, input, &out, io.Discard); err != nil || code != exitPerson {
			t.Errorf("%d, not read: exit %d, %v", size, code, err)
		}
	}
	for _, request := range []string{`{"args":["list"],"input":3}`, `{"args":["audit"],"input":-1}`, `{"args":["audit"],"input":999999999999}`} {
		_, errs, code := FramesAt(t, path, request+"\nabc")
		kit.Check(t, code == exitUsage && strings.Contains(errs, "no such input"), "%s: exit %d, %s", request, code, errs)
	}
}

// A refusal in words arrives, also where the client is still sending a list that nobody reads.
func TestControl_RefusalArrivesBeforeTheInput(t *testing.T) {
	path, _ := listen(t, &commandServer{execute: func(context.Context, peer, controlRequest, io.Reader, io.Writer, io.Writer) int { return exitDone }})
	for range 20 {
		var errs bytes.Buffer
		code, err := callControlWithInput(t.Context(), path, controlRequest{Args: []string{"list"}}, make([]byte, 8<<20), io.Discard, &errs)
		kit.Need(t, err == nil && code == exitUsage && strings.Contains(errs.String(), "takes no such input"),
			"exit %d, %v, %s", code, err, &errs)
	}
}

// Input that breaks off is no shorter input: a list that lost its end would pass as a whole one.
func TestControl_InputThatBreaksOff(t *testing.T) {
	got := make(chan error, 1)
	path, _ := listen(t, &commandServer{execute: func(_ context.Context, _ peer, _ controlRequest, input io.Reader, _, _ io.Writer) int {
		_, err := io.ReadAll(input)
		got <- err
		return exitDone
	}})
	conn := kit.Value(net.Dial("unix", path))(t)
	defer conn.Close()
	fmt.Fprint(conn, `{"args":["audit"],"input":9}`+"\n[1]\n")
	kit.Must(t, conn.(*net.UnixConn).CloseWrite())
	kit.Fails(t, "err", <-got, io.ErrUnexpectedEOF)
}
