package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sync/errgroup"
	"golang.org/x/sys/unix"

	"vaultd/internal/apicall"
	"vaultd/internal/archive"
	"vaultd/internal/pdfapi"
)

const (
	setPDF     = "P"
	pdfPath    = "/v2/pdf/invoiceUpload"
	pdfWorkers = 2 // uploads at once: the default of pdf.workers

	pdfReceiving, pdfNotify = "ap@in.example", "clerk@acme.example"
)

// pdfRows compare vaultd on the PDF route with a bare client: one POST and one PUT for each file, by as many workers, over TLS,
// and nothing else. That client claims nothing, copies nothing and keeps no record, so that a crash would leave it ignorant.
func (b *bench) pdfRows() []row {
	docs := b.scaleForQuick(3000)
	atOnce := fakeOptions{TLS: true}
	rows := []row{{ID: "pdf-client", Goal: "pdf", Title: "small PDFs, the calls alone: vaultd's client against a bare one", Warmup: 1,
		A: side{"vaultd's client", b.pdfCallsRun(docs, atOnce, ownPDFCalls)}, B: side{"bare client", b.pdfCallsRun(docs, atOnce, barePDFCalls)},
		Ratios: pdfRatios(), Counts: pdfCounts()}}
	for _, r := range []struct {
		id    string
		delay time.Duration
		docs  int // fewer, where the service takes its time
	}{{"pdf-flat", 0, docs}, {"pdf-10ms", 10 * time.Millisecond, b.scaleForQuick(2000)}, {"pdf-50ms", 50 * time.Millisecond, b.scaleForQuick(800)}} {
		service := fakeOptions{TLS: true, Delay: r.delay}
		rows = append(rows, row{ID: r.id, Goal: "pdf", Title: fmt.Sprintf("small PDFs, from the drop folder to the store: vaultd against a bare client; each answer takes %v", r.delay),
			A: side{"vaultd", b.pdfRun(r.docs, service)}, B: side{"bare client", b.pdfCallsRun(r.docs, service, barePDFCalls)},
			Warmup: 1, Ratios: pdfRatios(),
			Counts: append(pdfCounts(),
				count{"commits a document", commitsPerDoc, "told", nil},
				count{"ledger syncs a document", syncsPerDoc, "told", nil},
				notedPerDoc("syncs of other files a document", "file_syncs"),
				notedPerDoc("syncs of directories a document", "dir_syncs"))})
	}
	return rows
}

func pdfRatios() []ratio {
	return []ratio{
		{"documents a second", rateRatio, ">= 0.95", atLeast(0.95)},
		{"CPU", cpuRatio, "<= 1.15", atMost(1.15)},
	}
}

// pdfCounts are those of each run. Nobody registers or uploads twice where nothing fails.
func pdfCounts() []count {
	once := func(name, figure string) count {
		return count{name, func(s sample) float64 { return quotient(s.figureNamed(figure), float64(s.Docs)) }, "1", within(1, 1)}
	}
	return []count{
		once("registrations a document", "registered"),
		once("uploads a document", "puts"),
		{"short or badly signed", figureOfRow("bad"), "0", atMost(0)},
		{"documents a second", sample.rate, "told", nil},
		{"peak RssAnon, MiB", peakMiB, "<= 64", atMost(64)},
	}
}

// pdfFiles gives the paths of single PDFs of 40 kB each, made the first time that they are asked for.
func (b *bench) pdfFiles(ctx context.Context, docs int) ([]string, error) {
	dir, err := b.makeOnce(ctx, fmt.Sprintf("set-%s-%d-seed%d", setPDF, docs, b.seed), func(ctx context.Context, dir string) error {
		for i := range docs {
			ink := newInk(b.seed, setPDF, i)
			err := writeFile(filepath.Join(dir, folderName(setPDF, i)+".pdf"), func(w io.Writer) error { return ink.pdf(w, 40_000) })
			if err = errors.Join(err, ctx.Err()); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	files, err := filepath.Glob(filepath.Join(dir, "*.pdf"))
	if err == nil && len(files) != docs {
		err = fmt.Errorf("data set %s has %d files instead of %d", dir, len(files), docs)
	}
	return files, err
}

// pdfRun drops copies of the files, lets vaultd send them, and measures from its start until the last one is stored.
func (b *bench) pdfRun(docs int, o fakeOptions) func(context.Context, string) (sample, error) {
	return func(ctx context.Context, dir string) (s sample, err error) {
		files, err := b.pdfFiles(ctx, docs)
		if err != nil {
			return s, err
		}
		svc, err := b.serveIn(ctx, dir, o)
		if err != nil {
			return s, err
		}
		defer func() { err = errors.Join(err, svc.Stop()) }()
		drop := filepath.Join(dir, "drop")
		in, err := b.installVaultd(ctx, dir, setup{URL: svc.URL, CA: svc.CA, Drops: []string{drop}, PDF: true})
		if err == nil {
			err = copyToDrop(files, drop)
		}
		if err != nil {
			return s, err
		}
		unix.Sync() // the copies are not being written to the disk while vaultd works
		p, err := in.startDaemon(ctx)
		if err != nil {
			return s, err
		}
		defer p.kill()
		begin := beginning{at: p.began}
		if err := (work{p: p, svc: svc}).awaitStored(ctx, docs); err != nil {
			return s, err
		}
		s.Wall, s.Docs = time.Since(begin.at), docs
		return s, errors.Join(p.fillSample(&s, begin), svc.account(ctx, &s), p.stop())
	}
}

// copyToDrop makes a drop folder with copies of files: vaultd takes what is dropped.
func copyToDrop(files []string, drop string) error {
	if err := os.Mkdir(drop, 0o770); err != nil {
		return err
	}
	for _, file := range files {
		body, err := os.ReadFile(file)
		if err == nil {
			err = os.WriteFile(filepath.Join(drop, filepath.Base(file)), body, 0o660)
		}
		if err != nil {
			return fmt.Errorf("drop a copy: %w", err)
		}
	}
	return nil
}

// pdfCaller makes a client, once as a daemon does, that registers one finished PDF and uploads it.
type pdfCaller func(url, ca string) (send func(context.Context, archive.Package) error, err error)

// pdfCallsRun measures a client, in this process, that does nothing but the calls. What it sends has its digests already.
func (b *bench) pdfCallsRun(docs int, o fakeOptions, client pdfCaller) func(context.Context, string) (sample, error) {
	return func(ctx context.Context, dir string) (s sample, err error) {
		files, err := b.pdfFiles(ctx, docs)
		if err != nil {
			return s, err
		}
		pdfs := make([]archive.Package, len(files))
		for i, file := range files {
			if pdfs[i], err = measured(file); err != nil {
				return s, err
			}
		}
		svc, err := b.serveIn(ctx, dir, o)
		if err != nil {
			return s, err
		}
		defer func() { err = errors.Join(err, svc.Stop()) }()
		send, err := client(svc.URL, svc.CA)
		if err != nil {
			return s, err
		}
		s, err = measureOwnWork(func() error {
			g, ctx := errgroup.WithContext(ctx)
			g.SetLimit(pdfWorkers)
			for _, pdf := range pdfs {
				g.Go(func() error { return send(ctx, pdf) })
			}
			return g.Wait()
		})
		s.Docs = docs
		return s, errors.Join(err, svc.account(ctx, &s))
	}
}

// ownPDFCalls are those of vaultd's client.
func ownPDFCalls(url, ca string) (func(context.Context, archive.Package) error, error) {
	api, store, err := apicall.New(apicall.Config{BaseURL: url, CAFile: ca, UserAgent: "vaultbench",
		Auth: apicall.Auth{Method: apicall.Basic, Username: benchUser, Secret: func() (string, error) { return benchSecret, nil }}})
	if err != nil {
		return nil, err
	}
	client := pdfapi.New(pdfapi.Config{API: api, Store: store, Now: func() archive.Instant { return archive.Instant{Wall: time.Now()} }})
	return func(ctx context.Context, pdf archive.Package) error {
		id := archive.ID(pdf.SHA256[:16])
		answer, err := client.Register(ctx, "", []archive.RegisterRequest{{ID: id, Metadata: pdfRegistration()}})
		if err != nil {
			return err
		}
		ticket, ok := answer.Tickets[id]
		if !ok {
			return fmt.Errorf("register %s: no upload address: %v", pdf.Path, answer.Barred)
		}
		_, _, err = client.Upload(ctx, ticket, pdf)
		return err
	}, nil
}

// barePDFCalls are made with nothing but the standard library.
func barePDFCalls(url, ca string) (func(context.Context, archive.Package) error, error) {
	client, err := plainClient(ca, pdfWorkers)
	return func(ctx context.Context, pdf archive.Package) error {
		address, err := registerPDF(ctx, client, url)
		if err != nil {
			return fmt.Errorf("register %s: %w", pdf.Path, err)
		}
		return send(ctx, client, granted{archive.Ticket{URL: address}, pdf})
	}, err
}

// registerPDF asks for an address with one POST.
func registerPDF(ctx context.Context, client *http.Client, url string) (archive.PresignedURL, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url+pdfPath, bytes.NewReader(pdfRegistration()))
	if err != nil {
		return "", err
	}
	req.SetBasicAuth(benchUser, benchSecret)
	req.Header.Set("Content-Type", "application/json")
	resp, err := client.Do(req)
	if err != nil {
		return "", err
	}
	body, err := io.ReadAll(resp.Body)
	if err := errors.Join(err, resp.Body.Close()); err != nil {
		return "", err
	}
	if resp.StatusCode != http.StatusOK {
		return "", errors.New(resp.Status)
	}
	var slot struct {
		UploadURL archive.PresignedURL `json:"uploadUrl"`
	}
	return slot.UploadURL, json.Unmarshal(body, &slot)
}

// pdfRegistration is the body of each registration.
func pdfRegistration() []byte {
	return fmt.Appendf(nil, `{"receivingEmailAddress":%q,"notificationEmailAddress":%q}`, pdfReceiving, pdfNotify)
}
