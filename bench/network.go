package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime/multipart"
	"net/http"
	"net/textproto"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/google/uuid"
	"golang.org/x/sync/errgroup"
	"golang.org/x/sys/unix"
)

const (
	networkWorkers = 4 // calls at once: the default of network.workers
	networkFile    = 200_000
	toldNotices    = 100_000
	toldDocuments  = 100 // that they are about
)

// networkRows compare vaultd, that sends over the business network, with a bare client, that does the same POSTs with as many workers over TLS
// and nothing else: it keeps no record, so that a crash would leave it ignorant of what was sent.
func (b *bench) networkRows() []row {
	docs, large, told := b.scaleForQuick(1000), b.scaleForQuick(20), b.scaleForQuick(toldNotices)
	service := fakeOptions{TLS: true}
	once := func(name, figure string, want float64) count {
		return count{name, func(s sample) float64 { return quotient(s.figureNamed(figure), float64(s.Docs)) }, fmt.Sprint(want), within(want, want)}
	}
	each := []count{once("documents taken, of each", "documents", 1), once("files stored, of each", "files", 2), {"sent again", figureOfRow("repeated"), "0", atMost(0)},
		{"peak RssAnon, MiB", peakMiB, "<= 64", atMost(64)}, {"commits a document", commitsPerDoc, "told", nil}, {"ledger syncs a document", syncsPerDoc, "told", nil}}
	rows := []row{
		{ID: "network-large", Goal: "network", Title: fmt.Sprintf("memory: %d documents with a file of 95 MB and a small one, over the business network", large), Pairs: 1,
			A: side{"vaultd", b.networkRun(large, 95_000_000, service)}, Counts: each},
		{ID: "network-notices", Goal: "network", Title: fmt.Sprintf("%d notifications about %d documents, until each is acknowledged", told, toldDocuments), Pairs: 1,
			A: side{"vaultd", b.noticesRun(told, service)},
			Counts: []count{{"ledger syncs a notification", syncsPerDoc, "<= 0.1", atMost(0.1)}, {"calls a notification", func(s sample) float64 { return quotient(s.figureNamed("calls"), float64(s.Docs)) }, "<= 1.02", atMost(1.02)},
				{"peak RssAnon, MiB", peakMiB, "<= 64", atMost(64)}, {"notifications a second", sample.rate, "told", nil}}},
	}
	for _, delay := range []time.Duration{0, 10 * time.Millisecond, 50 * time.Millisecond} {
		o, docs := service, docs
		if o.Delay = delay; delay > 20*time.Millisecond {
			docs = b.scaleForQuick(300)
		}
		rows = append(rows, row{ID: fmt.Sprintf("network-%v", delay), Goal: "network",
			Title: fmt.Sprintf("documents with two files, from the drop folder to the business network: vaultd against a bare client; each answer takes %v", delay),
			A:     side{"vaultd", b.networkRun(docs, networkFile, o)}, B: side{"bare client", b.bareNetworkRun(docs, networkFile, o)}, Warmup: 1,
			Ratios: []ratio{{"wall", wallRatio, "<= 1.10", atMost(1.10)}, {"CPU", cpuRatio, "told", nil}}, Counts: each})
	}
	return rows
}

// networkFolders gives the paths of folders with a document, a PDF of so many bytes and a table, made the first time that they are asked for.
func (b *bench) networkFolders(ctx context.Context, docs, size int) ([]string, error) {
	dir, err := b.makeOnce(ctx, fmt.Sprintf("set-N-%d-%d-seed%d", docs, size, b.seed), func(ctx context.Context, dir string) error {
		for i := range docs {
			folder := filepath.Join(dir, folderName("N", i))
			ink := newInk(b.seed, "N", i)
			err := errors.Join(os.Mkdir(folder, 0o770), writeFile(filepath.Join(folder, "rechnung.pdf"), func(w io.Writer) error { return ink.pdf(w, size) }),
				os.WriteFile(filepath.Join(folder, "anlage.csv"), fmt.Appendf(nil, "a;b\n%d;2\n", i), 0o660), os.WriteFile(filepath.Join(folder, "document.json"), networkDocument(i), 0o660), ctx.Err())
			if err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	folders, err := filepath.Glob(filepath.Join(dir, "*", "document.json"))
	if err == nil && len(folders) != docs {
		err = fmt.Errorf("data set %s has %d folders instead of %d", dir, len(folders), docs)
	}
	for i := range folders {
		folders[i] = filepath.Dir(folders[i])
	}
	return folders, err
}

// networkDocument is the i-th document.
func networkDocument(i int) []byte {
	return fmt.Appendf(nil, `{"documentType":"Invoice","data":{"externalDocumentIdentifier":{"id":"N-%d"},"issueDate":"2026-10-31","documentCurrencyCode":"EUR",
"accountingSupplierParty":{"partyName":"Müller & Söhne"},"accountingCustomerParty":{"partyName":"Acme AG"},"taxTotal":{"taxSubtotals":[{"taxableAmount":%d.10,"percent":19}]}},
"processingPreference":{"sentTo":{"id":"4012345000009","schemeId":"GLN"}}}`, i, i+100)
}

// networkRun drops copies of folders, lets vaultd send them, and measures from its start until the network has the last document.
func (b *bench) networkRun(docs, size int, o fakeOptions) func(context.Context, string) (sample, error) {
	return func(ctx context.Context, dir string) (s sample, err error) {
		p, svc, err := b.startSending(ctx, dir, docs, size, o)
		if err != nil {
			return s, err
		}
		defer func() { err = errors.Join(err, svc.Stop()) }()
		defer p.kill()
		begin := beginning{at: p.began}
		if err := p.awaitNetwork(ctx, svc, "documents", func(n networkStats) bool { return n.Documents >= docs }); err != nil {
			return s, err
		}
		s.Wall, s.Docs = time.Since(begin.at), docs
		return s, errors.Join(p.fillSample(&s, begin), svc.accountNetwork(ctx, &s), p.stop())
	}
}

// startSending starts vaultd over copies of so many folders.
func (b *bench) startSending(ctx context.Context, dir string, docs, size int, o fakeOptions) (*process, *fake, error) {
	folders, err := b.networkFolders(ctx, docs, size)
	if err != nil {
		return nil, nil, err
	}
	svc, err := b.serveIn(ctx, dir, o)
	if err != nil {
		return nil, nil, err
	}
	drop := filepath.Join(dir, "drop")
	in, err := b.installVaultd(ctx, dir, setup{URL: svc.URL, CA: svc.CA, Drops: []string{drop}, Network: true})
	if err = errors.Join(err, os.Mkdir(drop, 0o770)); err != nil {
		return nil, nil, errors.Join(err, svc.Stop())
	}
	for _, folder := range folders {
		if err := os.CopyFS(filepath.Join(drop, filepath.Base(folder)), os.DirFS(folder)); err != nil {
			return nil, nil, errors.Join(fmt.Errorf("drop a copy: %w", err), svc.Stop())
		}
	}
	unix.Sync() // the copies are not being written to the disk while vaultd works
	p, err := in.startDaemon(ctx)
	if err != nil {
		return nil, nil, errors.Join(err, svc.Stop())
	}
	return p, svc, nil
}

// noticesRun lets the network tell of documents that vaultd sent, and measures until each notification is acknowledged.
func (b *bench) noticesRun(told int, o fakeOptions) func(context.Context, string) (sample, error) {
	return func(ctx context.Context, dir string) (s sample, err error) {
		p, svc, err := b.startSending(ctx, dir, toldDocuments, 2000, o)
		if err != nil {
			return s, err
		}
		defer func() { err = errors.Join(err, svc.Stop()) }()
		defer p.kill()
		if err := p.awaitNetwork(ctx, svc, "documents", func(n networkStats) bool { return n.Documents >= toldDocuments }); err != nil {
			return s, err
		}
		var before, after networkStats
		begin, err := p.beginning()
		if err == nil {
			err = svc.askFake(ctx, fmt.Sprint("/_tell?n=", told), &before)
		}
		if err == nil {
			err = p.awaitNetwork(ctx, svc, "acknowledgements", func(n networkStats) bool { after = n; return n.Acknowledged >= told })
		}
		if err != nil {
			return s, err
		}
		s.Wall, s.Docs = time.Since(begin.at), told
		s.noteFigure("calls", float64(after.Lists-before.Lists+after.Acknowledged-before.Acknowledged))
		return s, errors.Join(p.fillSample(&s, begin), p.stop())
	}
}

// awaitNetwork waits until the network has counted what is wanted.
func (p *process) awaitNetwork(ctx context.Context, svc *fake, what string, isEnough func(networkStats) bool) error {
	return p.awaitUntil(ctx, 10*time.Millisecond, what, func() (bool, error) {
		var n networkStats
		err := svc.askFake(ctx, "/_network", &n)
		return isEnough(n), err
	})
}

// accountNetwork fills in what the network has counted.
func (f *fake) accountNetwork(ctx context.Context, s *sample) error {
	var n networkStats
	err := f.askFake(ctx, "/_network", &n)
	s.Out = n.Bytes
	s.noteFigure("documents", float64(n.Documents))
	s.noteFigure("files", float64(n.Files))
	s.noteFigure("repeated", float64(n.Repeated))
	return err
}

// bareNetworkRun measures a client that does nothing but the calls.
func (b *bench) bareNetworkRun(docs, size int, o fakeOptions) func(context.Context, string) (sample, error) {
	return func(ctx context.Context, dir string) (s sample, err error) {
		folders, err := b.networkFolders(ctx, docs, size)
		if err != nil {
			return s, err
		}
		svc, err := b.serveIn(ctx, dir, o)
		if err != nil {
			return s, err
		}
		defer func() { err = errors.Join(err, svc.Stop()) }()
		client, err := plainClient(svc.CA, networkWorkers)
		if err != nil {
			return s, err
		}
		s, err = measureOwnWork(func() error {
			g, ctx := errgroup.WithContext(ctx)
			g.SetLimit(networkWorkers)
			for _, folder := range folders {
				g.Go(func() error { return sendBare(ctx, client, svc.URL, folder) })
			}
			return g.Wait()
		})
		s.Docs = docs
		return s, errors.Join(err, svc.accountNetwork(ctx, &s))
	}
}

// sendBare stores the two files of a folder and sends its document, with nothing but the standard library.
func sendBare(ctx context.Context, client *http.Client, url, folder string) error {
	number := uuid.NewSHA1(uuid.Nil, []byte(folder)).String()
	var ids []map[string]string
	for _, name := range []string{"anlage.csv", "rechnung.pdf"} {
		id, err := storeBare(ctx, client, url, number, filepath.Join(folder, name))
		if err != nil {
			return fmt.Errorf("store %s: %w", name, err)
		}
		ids = append(ids, map[string]string{"refId": id})
	}
	text, err := os.ReadFile(filepath.Join(folder, "document.json"))
	if err != nil {
		return err
	}
	var document map[string]json.RawMessage
	if err := json.Unmarshal(text, &document); err != nil {
		return err
	}
	body, err := json.Marshal(map[string]any{"fileRefs": ids, "data": document["data"], "processingPreference": document["processingPreference"]})
	if err != nil {
		return err
	}
	return postBare(ctx, client, url+"/v2/invoices/"+number, "application/json", bytes.NewReader(body), nil)
}

// storeBare stores a file, which it reads while it sends it.
func storeBare(ctx context.Context, client *http.Client, url, number, path string) (string, error) {
	file, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return "", err
	}
	var frame bytes.Buffer
	parts := multipart.NewWriter(&frame)
	request, err := parts.CreatePart(textproto.MIMEHeader{"Content-Disposition": {`form-data; name="request"`}, "Content-Type": {"application/json"}})
	if err == nil {
		_, err = fmt.Fprintf(request, `{"bumId":%q,"fileType":"attachmentFile"}`, number)
	}
	if err == nil {
		_, err = parts.CreatePart(textproto.MIMEHeader{"Content-Disposition": {fmt.Sprintf(`form-data; name="file"; filename=%q`, filepath.Base(path))}, "Content-Type": {"application/octet-stream"}})
	}
	before := slices.Clone(frame.Bytes())
	frame.Reset()
	if err = errors.Join(err, parts.Close()); err != nil {
		return "", err
	}
	var stored struct{ FileID string }
	body := io.MultiReader(bytes.NewReader(before), file, bytes.NewReader(frame.Bytes()))
	err = postBare(ctx, client, url+"/v2/files", "multipart/mixed; boundary="+parts.Boundary(), sizedReader{body, int64(len(before)) + info.Size() + int64(frame.Len())}, &stored)
	return stored.FileID, err
}

// sizedReader is a body whose length is known.
type sizedReader struct {
	io.Reader
	size int64
}

// postBare makes one POST, and reads the answer into what is given.
func postBare(ctx context.Context, client *http.Client, url, kind string, body io.Reader, answer any) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url, body)
	if err != nil {
		return err
	}
	if sized, ok := body.(sizedReader); ok {
		req.ContentLength = sized.size
	}
	req.Header.Set("Content-Type", kind)
	req.Header.Set("X-SVC-REQUEST-ID", uuid.NewString())
	req.SetBasicAuth(benchUser, benchSecret)
	resp, err := client.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return errors.New(resp.Status)
	}
	if answer == nil {
		_, err = io.Copy(io.Discard, resp.Body)
		return err
	}
	return json.NewDecoder(resp.Body).Decode(answer)
}
