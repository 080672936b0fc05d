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
	"net/http"
	"os"
	"os/exec"
	"strings"
	"time"
)

// fakeOptions say how the stand-in of the service behaves.
type fakeOptions struct {
	TLS          bool
	Listen       string        // address; empty: any free port of this machine
	Disk         string        // directory for what it is sent; empty: counted and thrown away
	Verify       bool          // hashes every body and holds it against Content-MD5; costs processor time
	Lax          bool          // takes a body that ended early for a whole one, as some stores do, where no Content-MD5 came with it
	Delay        time.Duration // before each answer
	Faults       string        // "op:kind:rate,…": see parseFaults
	Busy         bool          // has all documents of filled ledgers too, and is still archiving them
	Index        int           // its index has the documents of a ledger that was filled with so many
	Rewritten    bool          // the index writes amounts otherwise than they were sent
	Window       time.Duration // life of an upload address; 0: 15 minutes
	ArchiveAfter time.Duration // from the upload to "archived"
	Seed         uint64        // of what happens by chance
	Store        string        // base address of another store that its addresses lead to; empty: its own
}

// fakeStats is what the stand-in has counted since it started.
type fakeStats struct {
	Posts         int   // registrations asked for, whatever became of them
	BatchCalls    int   // of them carried out
	Registered    int   // documents in these
	Reregistered  int   // of them for a clientUUID that was registered before
	Puts          int   // uploads begun
	Rebegun       int   // of them for a clientUUID for which one was begun before
	Rush          int   // the most of them within rush
	Stored        int   // of them taken
	Bytes         int64 // of those
	Again         int   // of those for a number that held the same bytes already
	Duplicates    int   // clientUUIDs that hold content under more than one number
	Different     int   // uploads that replaced the bytes of a number by others
	ShortBodies   int   // bodies that ended early; not stored
	TakenShort    int   // bodies that ended early and were stored, by a lax one
	BadDigests    int   // bodies that are not what Content-MD5 says; not stored
	BadSignatures int
	Expired       int // uploads after the end of their address
	Unauthorized  int
	StatusAsked   int // about one document
	ListsAsked    int
	Archived      int // documents that the service has said to be archived, or would if asked
	Faulted       int // answers spoilt on purpose
}

// stored is one package that the stand-in holds.
type stored struct {
	BumID, ClientUUID string
	Size              int64
	MD5               string // empty without Verify
}

// fake is a stand-in that runs in a process of its own.
type fake struct {
	URL, CA string // base address, and the file with the certificate of its authority; CA is empty without TLS
	client  *http.Client
	cmd     *exec.Cmd
}

// startFake starts `vaultbench fake` and waits until it serves. Stop ends it, and so does the end of ctx. dir is for
// its certificate.
func (b *bench) startFake(ctx context.Context, dir string, o fakeOptions) (*fake, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("start stand-in: %w", err)
	}
	var said bytes.Buffer
	cmd := child(ctx, self, append([]string{"fake", "-dir", dir}, o.asFlags()...)...)
	cmd.Stderr = &said
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		return nil, fmt.Errorf("start stand-in: %w", err)
	}
	f := &fake{cmd: cmd}
	line, err := bufio.NewReader(out).ReadBytes('\n')
	if err == nil {
		err = json.Unmarshal(line, &f)
	}
	if err == nil {
		f.client, err = plainClient(f.CA, 2)
	}
	if err != nil {
		return nil, fmt.Errorf("start stand-in: %w: %s", errors.Join(err, f.Stop()), strings.TrimSpace(said.String()))
	}
	return f, nil
}

// asFlags are the flags that give o again.
func (o fakeOptions) asFlags() []string {
	return []string{
		fmt.Sprintf("-tls=%t", o.TLS), "-listen=" + cmp.Or(o.Listen, "127.0.0.1:0"), "-disk=" + o.Disk, fmt.Sprintf("-verify=%t", o.Verify), fmt.Sprintf("-lax=%t", o.Lax), fmt.Sprintf("-busy=%t", o.Busy),
		fmt.Sprintf("-index=%d", o.Index), fmt.Sprintf("-rewritten=%t", o.Rewritten), "-delay=" + o.Delay.String(),
		"-faults=" + o.Faults, "-window=" + o.Window.String(), "-archive-after=" + o.ArchiveAfter.String(), fmt.Sprintf("-seed=%d", o.Seed), "-store=" + o.Store,
	}
}

// Stats asks what the stand-in has counted.
func (f *fake) Stats(ctx context.Context) (s fakeStats, err error) {
	return s, f.askFake(ctx, "/_stats", &s)
}

// Objects asks what the stand-in holds, in the order in which it came.
func (f *fake) Objects(ctx context.Context) (all []stored, err error) {
	return all, f.askFake(ctx, "/_objects", &all)
}

// Clients asks how often each clientUUID was registered.
func (f *fake) Clients(ctx context.Context) (registered map[string]int, err error) {
	return registered, f.askFake(ctx, "/_clients", &registered)
}

func (f *fake) askFake(ctx context.Context, path string, to any) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, f.URL+path, nil)
	if err != nil {
		return fmt.Errorf("ask stand-in: %w", err)
	}
	resp, err := f.client.Do(req)
	if err != nil {
		return fmt.Errorf("ask stand-in: %w", err)
	}
	body, err := io.ReadAll(resp.Body)
	if err := errors.Join(err, resp.Body.Close()); err != nil {
		return fmt.Errorf("ask stand-in: %w", err)
	}
	return json.Unmarshal(body, to)
}

// Stop ends the stand-in. It keeps nothing, so nothing is lost by that.
func (f *fake) Stop() error {
	if f.client != nil {
		f.client.CloseIdleConnections()
	}
	if err := f.cmd.Process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("stop stand-in: %w", err)
	}
	_ = f.cmd.Wait() // killed: that it did not end by itself is no news
	return nil
}
