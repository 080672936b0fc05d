package main

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"syscall"
	"time"

	"vaultd/internal/statedir"
)

// The protocol of the socket: the client sends one line of JSON, a controlRequest, and the
// bytes of input that it announces. The daemon answers with lines of JSON, a controlFrame each; the last one has the exit
// code. The kernel tells who asks; nothing that the client sends counts for that.
type controlRequest struct {
	Args  []string `json:"args"`
	Input int64    `json:"input,omitempty"` // bytes that follow the line; of audit: a list of what was expected

	Audit *auditHandover `json:"audit,omitempty"` // of audit alone
}

type controlFrame struct {
	Out  []byte `json:"out,omitempty"` // base64 in JSON
	Err  []byte `json:"err,omitempty"`
	Exit *int   `json:"exit,omitempty"`
}

const (
	maxRequest     = 64 << 10
	maxInput       = 64 << 20         // bytes of input: the longest list as it is sent
	inputTime      = time.Minute      // for all of the input to arrive: the client has it before it asks
	maxFrame       = 32 << 10         // bytes of output in one frame
	requestTime    = 5 * time.Second  // for the request to arrive
	answerTime     = time.Hour        // for a frame to be taken: a person may be reading it page by page
	maxSocketPath  = 107              // the kernel's limit
	maxFrameOnWire = 2 * maxFrame     // base64 and its frame
	dialTime       = 10 * time.Second // a local connect is immediate unless the backlog is full
)

// insideCommands are those that may run inside the daemon: they read, or they commit what
// a person decided about one entry, or say to the network what he decided about one received document. None writes a file for whoever asks; what doctor
// writes into a drop folder to try it is removed at once.
var insideCommands = []string{
	"list", "show", "status", "audit", "verify", "fetch", "version", "why", "find", "receipt", "vaults", "directory", "extracts", "notices", "arrivals", "books", "index", "backup",
	"suggest", "doctor", "reload", "reconcile", "retry", "resume", "close", "release", "hold", "unhold", "accept", "reject",
}

// ownerCommands are those for root and the daemon's own user alone, with the
// words for everybody else.
var ownerCommands = map[string]string{
	"backup": "the whole ledger, with the upload addresses that still work, goes to root and vaultd's own user alone",
	"reload": "root and vaultd's own user alone may let vaultd read its configuration again",
}

// commandServer answers commands on the daemon's socket.
type commandServer struct {
	execute func(ctx context.Context, p peer, req controlRequest, input io.Reader, stdout, stderr io.Writer) int
	peerOf  func(*net.UnixConn) (peer, error)
	uid     uint32        // the daemon's own
	groups  []uint32      // who else may ask
	patient time.Duration // how long all of the input may take; zero: inputTime

	owners, members commandSlots // root and the daemon's own user; members of the groups
}

// serveControl answers commands on l, which listenControl made, until ctx ends, and returns
// when the last one has ended. The socket is for root, the daemon's own user and members of
// the groups; anybody else gets a refusal in words. enter puts each command inside the daemon
// as it is when the command begins.
func serveControl(ctx context.Context, l *net.UnixListener, enter func(*app), groups []uint32) error {
	s := &commandServer{peerOf: peerOf, uid: uint32(os.Geteuid()), groups: groups}
	reports := &handedOver{lines: map[uint32]uint64{}}
	s.execute = func(ctx context.Context, p peer, req controlRequest, input io.Reader, stdout, stderr io.Writer) int {
		a := &app{stdin: input, stdout: stdout, stderr: stderr, uid: p.uid, handover: req.Audit, reports: reports}
		enter(a)
		return a.executeArgs(ctx, req.Args)
	}
	return s.serveClients(ctx, l)
}

// listenControl makes the socket. One that a dead daemon left is removed, and only
// after nobody answered on it.
func listenControl(path string, groups []uint32) (*net.UnixListener, error) {
	if len(path) > maxSocketPath {
		return nil, fail(exitConfig, fmt.Errorf("listen on %s: the path is longer than %d bytes", path, maxSocketPath), "use a shorter state_dir")
	}
	addr := &net.UnixAddr{Name: path, Net: "unix"}
	conn, err := net.DialUnix("unix", nil, addr)
	switch {
	case err == nil:
		return nil, errors.Join(&statedir.InUseError{Path: path}, conn.Close())
	case errors.Is(err, syscall.ECONNREFUSED):
		if err := removeStaleSocket(path); err != nil {
			return nil, err
		}
	case !errors.Is(err, fs.ErrNotExist):
		return nil, fmt.Errorf("look for another daemon: %w", err)
	}
	l, err := net.ListenUnix("unix", addr)
	if err != nil {
		return nil, fmt.Errorf("listen for commands: %w", err)
	}
	if err := setSocketRights(path, groups); err != nil {
		return nil, errors.Join(err, l.Close())
	}
	return l, nil
}

func removeStaleSocket(path string) error {
	info, err := os.Lstat(path)
	if err == nil && info.Mode().Type() != fs.ModeSocket {
		err = fmt.Errorf("%s is in the way: it is not a socket", path)
	}
	if err == nil {
		// The caller holds the lock of state_dir and got no answer: no daemon can own this socket. A crash behind this leaves no
		// socket, and the next start makes one.
		err = os.Remove(path)
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("remove the socket of an earlier daemon: %w", err)
	}
	return nil
}

// setSocketRights lets the users that may give commands reach the socket. A file has one
// group: with several groups everybody can reach it, and the credentials of the peer
// decide, as they do in any case. The other files in state_dir stay closed.
func setSocketRights(path string, groups []uint32) error {
	dir := filepath.Dir(path)
	socketMode, dirMode := fs.FileMode(0o660), fs.FileMode(0o700)
	switch len(groups) {
	case 0:
	case 1:
		dirMode = 0o710
		err := errors.Join(os.Lchown(path, -1, int(groups[0])), os.Chown(dir, -1, int(groups[0]))) // state_dir may be a link
		if errors.Is(err, fs.ErrPermission) {                                                      // a sandbox forbids it: as with several
			socketMode, dirMode, err = 0o666, 0o711, nil
		}
		if err != nil {
			return fmt.Errorf("give the socket to group %d: %w", groups[0], err)
		}
	default:
		socketMode, dirMode = 0o666, 0o711
	}
	// The socket's rights are set before the directory is opened for others. A crash in between closes it for them until the next start.
	if err := errors.Join(os.Chmod(path, socketMode), os.Chmod(dir, dirMode)); err != nil {
		return fmt.Errorf("set rights of the socket: %w", err)
	}
	return nil
}

// serveClients answers until ctx ends.
func (s *commandServer) serveClients(ctx context.Context, l *net.UnixListener) error {
	s.owners, s.members = newCommandSlots(), newCommandSlots()
	stop := context.AfterFunc(ctx, func() { l.Close() })
	defer stop()
	var commands sync.WaitGroup
	defer commands.Wait()
	for {
		conn, err := l.AcceptUnix()
		switch {
		case ctx.Err() != nil:
			if err == nil {
				return conn.Close()
			}
			return nil
		case errors.Is(err, net.ErrClosed):
			return fmt.Errorf("listen for commands: %w", err)
		case err != nil: // out of descriptors, most likely: it passes
			waitOrCancel(ctx, 100*time.Millisecond)
			continue
		}
		// The kernel is asked before anything is read: a client that may not ask is refused at once and holds no slot.
		p, err := s.peerOf(conn)
		commands.Go(func() {
			if err != nil {
				refuseClient(conn, exitInternal, "cannot tell who asks: "+err.Error())
				return
			}
			s.admitPeer(ctx, conn, p)
		})
	}
}

func waitOrCancel(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
	case <-t.C:
	}
}

// answerClient answers one client. Its command is cancelled when the client goes away, and when ctx ends.
func (s *commandServer) answerClient(ctx context.Context, conn *net.UnixConn, p peer, slots commandSlots, arrived func()) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	hangUp := context.AfterFunc(ctx, func() { conn.Close() })
	defer hangUp()
	conn.SetDeadline(time.Now().Add(requestTime)) //lint:ignore errcheck fails on a closed connection only
	line, rest, err := readRequest(conn)
	if err != nil {
		refuseClient(conn, exitUsage, err.Error())
		return
	}
	arrived() // the request is here: its slot among those that arrive is free for the next client
	var req controlRequest
	if err := json.Unmarshal(line, &req); err != nil || len(req.Args) == 0 || !slices.Contains(insideCommands, req.Args[0]) {
		refuseClient(conn, exitUsage, "this command does not run inside the daemon; are both of the same version?")
		return
	}
	if req.Input < 0 || req.Input > maxInput || (req.Input > 0 || req.Audit != nil) && req.Args[0] != "audit" {
		refuseClient(conn, exitUsage, "this command takes no such input")
		return
	}
	if why, isForOwners := ownerCommands[req.Args[0]]; isForOwners && !s.isOwner(p) {
		refuseClient(conn, exitRights, why)
		return
	}
	release := acquireSlot(slots.running)
	if release == nil && slices.Contains(quickCommands, req.Args[0]) {
		if release = acquireSlot(slots.reserve); release != nil {
			quick := time.AfterFunc(quickTime, cancel)
			defer quick.Stop()
		}
	}
	if release == nil {
		refuseClient(conn, exitTemporary, tooMany)
		return
	}
	defer release()
	forgotten := func() {}
	if req.Input > 0 {
		// The list stays in memory until its report is made: one at a time bounds that, whatever its size and however slowly it comes.
		list := acquireSlot(slots.lists)
		if list == nil {
			refuseClient(conn, exitTemporary, tooManyLists)
			return
		}
		defer list()
		forgotten = list
	}
	s.runCommand(ctx, cancel, conn, p, req, rest, forgotten)
}

// runCommand executes the command and sends what it writes. rest is what the client sends behind the request. forgotten is called when
// the input is, and before the client hears of the end: it may ask again at once.
func (s *commandServer) runCommand(ctx context.Context, cancel func(), conn *net.UnixConn, p peer, req controlRequest, rest io.Reader, forgotten func()) {
	conn.SetReadDeadline(time.Now().Add(cmp.Or(s.patient, inputTime))) //lint:ignore errcheck fails on a closed connection only
	gone := make(chan struct{})
	input, fed := io.Pipe()
	go func() {
		defer close(gone)
		_, err := io.CopyN(fed, rest, req.Input)
		switch {
		case errors.Is(err, io.EOF):
			err = io.ErrUnexpectedEOF // the command must not take what came for all of it
		case errors.Is(err, os.ErrDeadlineExceeded):
			err = fmt.Errorf("it did not arrive in time: %w", err)
		}
		fed.CloseWithError(err)
		conn.SetReadDeadline(time.Time{}) //lint:ignore errcheck fails on a closed connection only
		// Input that the command did not read is thrown away, and nothing comes behind it: this ends when the client goes away.
		io.Copy(io.Discard, conn) //lint:ignore errcheck whatever happens, the command ends
		cancel()
	}()
	w := &frameWriter{conn: conn, lost: cancel}
	code := s.executeGuarded(ctx, p, req, input, w)
	input.Close() // input that the command left is dropped
	forgotten()
	w.sendFrame(controlFrame{Exit: &code})
	conn.Close()
	<-gone
}

// executeGuarded executes a command. A panic in it ends the command alone, not the daemon.
func (s *commandServer) executeGuarded(ctx context.Context, p peer, req controlRequest, input io.Reader, w *frameWriter) (code int) {
	defer func() {
		if r := recover(); r != nil {
			w.sendFrame(controlFrame{Err: fmt.Appendf(nil, "vaultd: internal error in %s: %v\n", req.Args[0], r)})
			code = exitInternal
		}
	}()
	return s.execute(ctx, p, req, input, stream{w, false}, stream{w, true})
}

// readRequest reads one line, and not a byte more than its limit. rest gives what follows the line.
func readRequest(conn io.Reader) (line []byte, rest io.Reader, err error) {
	in := bufio.NewReaderSize(io.LimitReader(conn, maxRequest), maxRequest)
	line, err = in.ReadBytes('\n')
	switch {
	case err == nil:
		ahead, _ := in.Peek(in.Buffered()) // what is buffered is there
		return line, io.MultiReader(bytes.NewReader(ahead), conn), nil
	case len(line) >= maxRequest:
		return nil, nil, errors.New("the request is too long")
	}
	return nil, nil, fmt.Errorf("the request did not arrive: %w", err)
}

// refuseClient answers with a message and an exit code, and closes the connection.
func refuseClient(conn *net.UnixConn, code int, words string) {
	conn.SetDeadline(time.Now().Add(requestTime)) //lint:ignore errcheck fails on a closed connection only
	w := &frameWriter{conn: conn, lost: func() {}}
	w.sendFrame(controlFrame{Err: []byte("vaultd: " + words + "\n")})
	w.sendFrame(controlFrame{Exit: &code})
	conn.Close()
}

// frameWriter sends frames, whole, from several goroutines.
type frameWriter struct {
	mu   sync.Mutex
	conn *net.UnixConn
	lost func()
	err  error // of the first frame that was not sent; guarded by mu
}

// sendFrame sends a frame; whether it arrives does not matter.
func (w *frameWriter) sendFrame(f controlFrame) { _ = w.trySendFrame(f) }

// trySendFrame sends a frame; after a failure it sends nothing more.
func (w *frameWriter) trySendFrame(f controlFrame) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.err != nil {
		return w.err
	}
	line, err := json.Marshal(f)
	if err != nil {
		panic(fmt.Sprintf("encode a frame: %v", err)) // bytes and numbers always encode
	}
	w.conn.SetWriteDeadline(time.Now().Add(answerTime)) //lint:ignore errcheck then the write fails
	if _, w.err = w.conn.Write(append(line, '\n')); w.err != nil {
		w.lost()
	}
	return w.err
}

// stream is one of the two outputs of a command.
type stream struct {
	w     *frameWriter
	isErr bool
}

func (s stream) Write(b []byte) (int, error) {
	sent := 0
	for piece := range slices.Chunk(b, maxFrame) {
		f := controlFrame{Out: piece}
		if s.isErr {
			f = controlFrame{Err: piece}
		}
		if err := s.w.trySendFrame(f); err != nil {
			return sent, err
		}
		sent += len(piece)
	}
	return sent, nil
}

// errNoDaemon says that nobody listens on the socket.
var errNoDaemon = errors.New("no daemon is running")

// callControl runs a command inside the daemon that listens at path and copies what it
// writes. The error is errNoDaemon where nobody listens.
func callControl(ctx context.Context, path string, args []string, stdout, stderr io.Writer) (code int, err error) {
	return callControlWithInput(ctx, path, controlRequest{Args: args}, nil, stdout, stderr)
}

// callControlWithInput is callControl for a command that reads input.
func callControlWithInput(ctx context.Context, path string, req controlRequest, input []byte, stdout, stderr io.Writer) (code int, err error) {
	if len(path) > maxSocketPath {
		return 0, errNoDaemon // nobody can listen there
	}
	conn, err := (&net.Dialer{Timeout: dialTime}).DialContext(ctx, "unix", path)
	switch {
	case errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ECONNREFUSED):
		return 0, errNoDaemon
	case errors.Is(err, fs.ErrPermission):
		return 0, fail(exitRights, fmt.Errorf("reach the running vaultd: %w", err), "root, the daemon's user and members of access.groups may give commands")
	case err != nil:
		return 0, fmt.Errorf("reach the running vaultd: %w", err)
	}
	defer conn.Close() // the daemon sees it and ends the command
	hangUp := context.AfterFunc(ctx, func() { conn.Close() })
	defer hangUp()
	req.Input = int64(len(input))
	line, err := json.Marshal(req)
	if err != nil {
		return 0, fmt.Errorf("encode the command: %w", err)
	}
	if len(line) >= maxRequest {
		return 0, usageError{errors.New("the arguments are too long")}
	}
	code, err = exchange(conn, append(line, '\n'), input, stdout, stderr)
	if ctx.Err() != nil { // the stop closed the connection, and may have done it under a write as well as under a read
		return 0, fmt.Errorf("stopped: %w", context.Cause(ctx))
	}
	return code, err
}

// exchange sends a request with its input and copies the answer.
func exchange(conn net.Conn, request, input []byte, stdout, stderr io.Writer) (code int, err error) {
	for _, b := range [][]byte{request, input} {
		if _, err := conn.Write(b); errors.Is(err, syscall.EPIPE) || errors.Is(err, syscall.ECONNRESET) {
			break // refused early: the answer says why
		} else if err != nil {
			return 0, fmt.Errorf("ask the running vaultd: %w", err)
		}
	}
	return copyAnswer(conn, stdout, stderr)
}

// copyAnswer copies frames until the one with the exit code.
func copyAnswer(conn io.Reader, stdout, stderr io.Writer) (code int, err error) {
	in := bufio.NewReaderSize(conn, maxFrameOnWire)
	for {
		line, err := in.ReadSlice('\n')
		if err != nil {
			return 0, fail(exitTemporary, fmt.Errorf("the running vaultd broke off: %w", err), "it may be stopping; try again")
		}
		var f controlFrame
		if err := json.Unmarshal(bytes.TrimSpace(line), &f); err != nil {
			return 0, fail(exitInternal, fmt.Errorf("read the answer of the running vaultd: %w", err), "are both of the same version?")
		}
		if f.Exit != nil {
			return *f.Exit, nil
		}
		if _, err := stdout.Write(f.Out); err != nil {
			return 0, fail(exitIO, fmt.Errorf("write: %w", err), "")
		}
		if _, err := stderr.Write(f.Err); err != nil {
			return 0, fail(exitIO, fmt.Errorf("write: %w", err), "")
		}
	}
}
