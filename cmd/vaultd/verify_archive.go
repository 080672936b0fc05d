package main

import (
	"context"
	"errors"
	"fmt"
	"math/big"
	"net/http"
	"strconv"
	"strings"
	"time"

	"vaultd/internal/apicall"
	"vaultd/internal/archive"
	"vaultd/internal/ledger"
	"vaultd/internal/operator"
	"vaultd/internal/present"
	"vaultd/internal/proof"
	"vaultd/internal/sanitize"
	"vaultd/internal/spool"
	"vaultd/internal/vaultapi"
)

// portion is how many documents are to be compared: a number, or a part of all.
type portion struct {
	documents int
	part      *big.Rat // nil: so many documents
}

func parsePortion(text string) (s portion, err error) {
	wrong := usageError{fmt.Errorf("--archive %q: write how many, such as 60, or a part of all, such as 5%%", sanitize.Text(text))}
	if part, is := strings.CutSuffix(text, "%"); is {
		d, err := archive.ParseDecimal(part)
		if err != nil {
			return s, wrong
		}
		s.part = d.Rat()
		if s.part.Sign() <= 0 || s.part.Cmp(big.NewRat(100, 1)) > 0 {
			return s, wrong
		}
		s.part.Quo(s.part, big.NewRat(100, 1))
		return s, nil
	}
	if s.documents, err = strconv.Atoi(text); err != nil || s.documents <= 0 {
		return s, wrong
	}
	return s, nil
}

// countOf returns how many documents that is; a part is rounded up.
func (s portion) countOf(all uint64) int {
	if s.part == nil {
		return s.documents
	}
	n := new(big.Rat).Mul(s.part, new(big.Rat).SetUint64(all))
	whole, rest := new(big.Int).QuoRem(n.Num(), n.Denom(), new(big.Int))
	if rest.Sign() > 0 {
		whole.Add(whole, big.NewInt(1))
	}
	return int(whole.Int64())
}

// archiveVerdict is the object of "verify --archive --json".
type archiveVerdict struct {
	Asked     int                `json:"asked"`
	Documents []verifiedDocument `json:"documents"` // that were downloaded now
	Archived  uint64             `json:"archivedDocuments"`
	Compared  uint64             `json:"comparedDocuments"` // ever
	Differ    uint64             `json:"differentDocuments"`
	Used      uint64             `json:"downloadsThisMonth"`
	Allowed   uint64             `json:"downloadsAllowed"`
	Stopped   string             `json:"stopped"` // why it did not go on; empty: it did all that was asked
	Text      string             `json:"text"`
}

type verifiedDocument struct {
	Key     string `json:"key"`
	Folder  string `json:"folder"`
	Drop    string `json:"drop"`
	BumID   string `json:"bumId"`
	Outcome string `json:"outcome"` // same, container-differs, differs or failed
	Bytes   int64  `json:"bytes"`
	Text    string `json:"text"`
}

// verifyArchive downloads archived documents and compares them.
func (a *app) verifyArchive(ctx context.Context, v view, many portion) error {
	service, err := a.newServiceClient(v.cfg)
	if err != nil {
		return err
	}
	return a.verifyArchiveAt(ctx, v, service, many)
}

func (a *app) verifyArchiveAt(ctx context.Context, v view, service operator.Downloader, many portion) error {
	d := a.newDownloads(v, service)
	used, err := v.ledger.CountFetches(time.Now())
	if err != nil {
		return err
	}
	asked := many.countOf(v.ledger.Balance().States[ledger.Archived])
	// The one who is refused the last of them is told so by the ledger, not by this look at it.
	left := min(uint64(asked), max(d.Budget-min(used, d.Budget), 1))
	s, err := d.Sample(ctx, int(left))
	if err != nil {
		return err
	}
	found := archiveVerdict{Asked: asked, Documents: []verifiedDocument{}, Used: used, Allowed: d.Budget}
	stopped := a.verifyEach(ctx, v, service, &s, &found)
	found.Archived, found.Compared, found.Differ, found.Text = s.Counts.Archived, s.Counts.Compared, s.Counts.Differ, sampleWords(s.Counts)
	switch {
	case stopped != nil && len(found.Documents) == 0:
		return stopped
	case stopped != nil:
		found.Stopped = stopped.Error()
	case len(found.Documents) < asked && len(found.Documents) == int(left) && used+left >= d.Budget:
		found.Stopped = "the month has no download left"
	}
	if a.json {
		err = writeJSON(a.stdout, found)
	} else {
		found.writeText(a)
	}
	return errors.Join(err, found.asError(stopped))
}

// verifyEach downloads the chosen documents one after the other. Its error is why it stopped before the last one; what is wrong
// with one document alone does not stop it.
func (a *app) verifyEach(ctx context.Context, v view, service operator.Downloader, s *operator.Sampled, found *archiveVerdict) error {
	for _, key := range s.Next {
		e, ok, err := v.ledger.Entry(key)
		if err != nil || !ok {
			return errors.Join(err, context.Cause(ctx))
		}
		got, err := a.verifyOne(ctx, v, service, e)
		one := verifiedDocument{Key: key.String(), Folder: e.Folder, Drop: e.Drop, BumID: string(e.ArchivedRemote), Outcome: got.outcome, Bytes: got.size, Text: got.words}
		switch {
		case err != nil && !ofOneDocument(err):
			return err
		case err != nil:
			one.Outcome, one.Text = ledger.FetchFailed, err.Error()
		default:
			s.Counts.Replace(s.Past.LastComparison(e.Vault, e.ArchivedRemote), got.outcome)
		}
		found.Documents, found.Used = append(found.Documents, one), got.used
		if !a.json {
			fmt.Fprintf(a.stdout, "%-9s %s (%s): %s\n", outcomeWords[one.Outcome], sanitize.Text(e.Folder), sanitize.Text(e.Drop), sanitize.FirstLine(one.Text, 300))
		}
	}
	return nil
}

// verifyOne downloads one document into a file without a name, and compares it.
func (a *app) verifyOne(ctx context.Context, v view, service operator.Downloader, e ledger.Entry) (c comparedFile, err error) {
	tmp, err := spool.NamelessFile(v.cfg.StateDir)
	if err != nil {
		return c, err
	}
	defer func() { err = errors.Join(err, tmp.Close()) }()
	return a.downloadTo(ctx, v, service, archivedDownload(e), operator.Person{UID: a.uid}, tmp)
}

var outcomeWords = map[string]string{
	ledger.FetchSame: "SAME", ledger.FetchRepacked: "REPACKED", ledger.FetchDiffers: "DIFFERS", ledger.FetchFailed: "FAILED",
}

// ofOneDocument reports whether a download failed for what the archive has of this document, so that others may come.
func ofOneDocument(err error) bool {
	r, ok := errors.AsType[*apicall.Error](err)
	return errors.Is(err, vaultapi.ErrNotZIP) || ok && !r.Denied && !r.Overloaded() && !r.IsUnlisted() && (r.Status == http.StatusNotFound || r.Outcome == apicall.NotProcessed || r.Outcome == apicall.Refused)
}

func (f archiveVerdict) writeText(a *app) {
	fmt.Fprintf(a.stdout, "NOW       %s downloaded, of %d that were asked for\n", present.FormatCount(len(f.Documents), "document", "documents"), f.Asked)
	fmt.Fprintf(a.stdout, "BUDGET    %s\n", downloadBudgetText(f.Used, f.Allowed))
	if f.Stopped != "" {
		fmt.Fprintf(a.stdout, "STOPPED   %s\n", sanitize.Text(f.Stopped))
	}
	fmt.Fprintf(a.stdout, "RESULT    %s\n", f.Text)
}

// asError is how the command ends: what differs now counts more than what could not be looked at.
func (f archiveVerdict) asError(stopped error) error {
	differ, failed := 0, 0
	for _, d := range f.Documents {
		switch d.Outcome {
		case ledger.FetchDiffers:
			differ++
		case ledger.FetchFailed:
			failed++
		}
	}
	switch {
	case differ > 0:
		return fail(exitDifferences, fmt.Errorf("%s what was sent", present.FormatCount(differ, "document is not", "documents are not")),
			"vaultd fetch X downloads one again and keeps it; show it to the provider")
	case stopped != nil:
		return stopped
	case failed > 0:
		return fail(exitFailed, fmt.Errorf("%s not be downloaded", present.FormatCount(failed, "document could", "documents could")), "ask the provider about each bumId; its retention may have ended")
	}
	return nil
}

// sampleWords says how much of what is archived was downloaded and compared.
func sampleWords(s proof.Sample) string {
	return fmt.Sprintf("%d of %d downloaded and compared, %d differ", s.Compared, s.Archived, s.Differ)
}
