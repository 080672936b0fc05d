package main

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"time"

	"golang.org/x/sync/errgroup"

	"vaultd/internal/apicall"
	"vaultd/internal/archive"
	"vaultd/internal/packager"
	"vaultd/internal/vaultapi"
)

// bareWorkers is how many uploads run at once, as in the configuration that vaultd is measured with; bareBatch is how
// many documents are registered in one call.
const (
	bareWorkers = 8
	bareBatch   = 50
)

// bare does vaultd's work without its ledger, its watching and its claims, in this process: nothing of it would survive
// a crash.
type bare struct {
	folders []string
	bytes   int64 // of the files in them
	spool   string
	client  *vaultapi.Client
}

func (b *bench) newBare(ctx context.Context, set, dir string, svc *fake) (*bare, error) {
	folders, err := b.shelf(ctx, set)
	if err != nil {
		return nil, err
	}
	w := &bare{spool: filepath.Join(dir, "spool"), bytes: folders.bytes}
	for _, name := range folders.names {
		w.folders = append(w.folders, filepath.Join(folders.dir, name))
	}
	w.client, err = bareClient(svc.URL, svc.CA)
	return w, errors.Join(err, os.Mkdir(w.spool, 0o700))
}

// bareClient is vaultd's own client of the service.
func bareClient(url, ca string) (*vaultapi.Client, error) {
	api, store, err := apicall.New(apicall.Config{BaseURL: url, CAFile: ca, UserAgent: "vaultbench",
		Auth: apicall.Auth{Method: apicall.Basic, Username: benchUser, Secret: func() (string, error) { return benchSecret, nil }}})
	if err != nil {
		return nil, err
	}
	return vaultapi.New(vaultapi.Config{API: api, Store: store, Now: func() archive.Instant { return archive.Instant{Wall: time.Now()} }}), nil
}

// bareRun measures the parts one after the other (their processor time adds up), and then the path in one go.
func (b *bench) bareRun(set string) func(context.Context, string) (sample, error) {
	return func(ctx context.Context, dir string) (s sample, err error) {
		parts, err := b.bareParts(ctx, set, filepath.Join(dir, "parts"))
		if err != nil {
			return s, err
		}
		dir = filepath.Join(dir, "path")
		svc, err := b.serveIn(ctx, dir, fakeOptions{TLS: true})
		if err != nil {
			return s, err
		}
		defer func() { err = errors.Join(err, svc.Stop()) }()
		w, err := b.newBare(ctx, set, dir, svc)
		if err != nil {
			return s, err
		}
		began, cpu := time.Now(), ownCPU()
		if err := w.path(ctx); err != nil {
			return s, err
		}
		s = sample{Wall: time.Since(began), CPU: ownCPU() - cpu, Docs: len(w.folders), In: w.bytes}
		s.noteFigure("parts_cpu_s", parts.Seconds())
		return s, svc.account(ctx, &s)
	}
}

// bareParts returns what the ZIPs of a set cost to make and to read back, and what they cost to send.
func (b *bench) bareParts(ctx context.Context, set, dir string) (cpu time.Duration, err error) {
	svc, err := b.serveIn(ctx, dir, fakeOptions{TLS: true})
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, svc.Stop()) }()
	w, err := b.newBare(ctx, set, dir, svc)
	if err != nil {
		return 0, err
	}
	before := ownCPU()
	packed := make([]packager.Sealed, len(w.folders))
	g, gctx := errgroup.WithContext(ctx)
	g.SetLimit(runtime.GOMAXPROCS(0))
	for i, folder := range w.folders {
		g.Go(func() (err error) {
			packed[i], err = w.pack(gctx, folder)
			return err
		})
	}
	if err := g.Wait(); err != nil {
		return 0, err
	}
	cpu = ownCPU() - before
	var grants []granted
	for at := 0; at < len(packed); at += bareBatch {
		some, err := w.register(ctx, packed[at:min(at+bareBatch, len(packed))])
		if err != nil {
			return 0, err
		}
		grants = append(grants, some...)
	}
	put, err := rawClient(svc.URL, svc.CA)
	if err != nil {
		return 0, err
	}
	before = ownCPU()
	err = sendAll(ctx, grants, put)
	return cpu + ownCPU() - before, err
}

// pack looks into one folder and makes its ZIP, as vaultd does.
func (w *bare) pack(ctx context.Context, folder string) (packager.Sealed, error) {
	root, err := os.OpenRoot(folder)
	if err != nil {
		return packager.Sealed{}, err
	}
	s, err := buildAt(ctx, root, packager.Rules{Vault: benchVault}, filepath.Join(w.spool, filepath.Base(folder)+".zip"))
	return s, errors.Join(err, root.Close())
}

// granted is a ZIP with its upload address.
type granted struct {
	ticket archive.Ticket
	zip    archive.Package
}

func (w *bare) register(ctx context.Context, packed []packager.Sealed) ([]granted, error) {
	var frozen []archive.RegisterRequest
	for _, s := range packed {
		frozen = append(frozen, archive.RegisterRequest{ID: s.ID, Metadata: s.Metadata})
	}
	answer, err := w.client.Register(ctx, benchVault, frozen)
	if err != nil {
		return nil, err
	}
	if len(answer.Tickets) != len(packed) {
		return nil, fmt.Errorf("registered %d of %d documents", len(answer.Tickets), len(packed))
	}
	grants := make([]granted, len(packed))
	for i, s := range packed {
		grants[i] = granted{answer.Tickets[s.ID], s.Package}
	}
	return grants, nil
}

// path does it all at once: makers of ZIPs, one that registers what is made, and senders.
func (w *bare) path(ctx context.Context) error {
	made, sent := make(chan packager.Sealed, bareBatch), make(chan granted, bareBatch)
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error {
		defer close(made)
		return w.packAll(ctx, made)
	})
	g.Go(func() error {
		defer close(sent)
		return w.registerAll(ctx, made, sent)
	})
	for range bareWorkers {
		g.Go(func() error {
			for grant := range sent {
				if _, _, err := w.client.Upload(ctx, grant.ticket, grant.zip); err != nil {
					return err
				}
			}
			return nil
		})
	}
	return g.Wait()
}

func (w *bare) packAll(ctx context.Context, made chan<- packager.Sealed) error {
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(max(2, runtime.GOMAXPROCS(0)))
	for _, folder := range w.folders {
		g.Go(func() error {
			s, err := w.pack(ctx, folder)
			if err != nil {
				return err
			}
			select {
			case made <- s:
				return nil
			case <-ctx.Done():
				return context.Cause(ctx)
			}
		})
	}
	return g.Wait()
}

// registerAll fills a call with what is made, and waits for more no longer than vaultd does.
func (w *bare) registerAll(ctx context.Context, made <-chan packager.Sealed, sent chan<- granted) error {
	for first := range made {
		batch := []packager.Sealed{first}
		full := time.After(quickBatchWait)
	fill:
		for len(batch) < bareBatch {
			select {
			case s, ok := <-made:
				if !ok {
					break fill
				}
				batch = append(batch, s)
			case <-full:
				break fill
			}
		}
		grants, err := w.register(ctx, batch)
		if err != nil {
			return err
		}
		for _, grant := range grants {
			select {
			case sent <- grant:
			case <-ctx.Done():
				return context.Cause(ctx)
			}
		}
	}
	return nil
}

// send puts a ZIP to its address with nothing but the standard library.
func send(ctx context.Context, client *http.Client, grant granted) error {
	body, err := os.Open(grant.zip.Path)
	if err != nil {
		return err
	}
	defer body.Close() // read-only; the transport may have closed it
	req, err := http.NewRequestWithContext(ctx, http.MethodPut, string(grant.ticket.URL), body)
	if err != nil {
		return err
	}
	req.ContentLength = grant.zip.Size
	req.Header.Set("Content-Type", "application/octet-stream")
	req.Header.Set("Content-MD5", base64.StdEncoding.EncodeToString(grant.zip.MD5[:]))
	resp, err := client.Do(req)
	if err != nil {
		return fmt.Errorf("send %s: %w", grant.zip.Path, err)
	}
	_, err = io.Copy(io.Discard, resp.Body)
	if err := errors.Join(err, resp.Body.Close()); err != nil {
		return err
	}
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("send %s: %s", grant.zip.Path, resp.Status)
	}
	return nil
}
