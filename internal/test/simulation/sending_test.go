package simulation

import (
	"fmt"
	"testing"
	"time"

	"vaultd/internal/emulator"
	"vaultd/internal/ledger"
	"vaultd/internal/test/kit"
)

// documentWith returns a document for the business network with so many files.
func documentWith(files int) Folder {
	f := MakeDocument(5, 1, Document)
	for name := range f.Files {
		if name != documentName {
			delete(f.Files, name)
		}
	}
	for i := range files {
		f.Files[fmt.Sprintf("anlage %d.csv", i+1)] = fmt.Appendf(nil, "a;b\n%d", i)
	}
	return f
}

// sendOne sends one document under a plan, over whatever deaths that brings,
// and returns its entry, and how many files reached the network.
func sendOne(t *testing.T, p Plan, f Folder) (e ledger.Entry, files int) {
	t.Helper()
	w := New(t, sendingSoon(1, emulator.OutcomeRate{Outcome: "delivered", Rate: 1}))
	w.SetPlan(p)
	w.Start()
	w.DropFolders(outgoing, f)
	w.Advance(4 * time.Hour)
	w.RunUntilCalm(72 * time.Hour)
	delivered := w.Check(false).EntriesIn(ledger.Delivered)
	kit.Need(t, len(delivered) == 1, "delivered documents = %d, want 1", len(delivered))
	w.fate.mu.Lock()
	defer w.fate.mu.Unlock()
	return delivered[0], w.fate.seen[kind{Calls, "network-file"}]
}

// TestSending_I10_KilledBetweenItsCommits kills the process at each commit of a
// document with three files, and around each call. Before the numbers of the
// files are committed they are stored again; after that none is, and the same
// bytes go under the same number. The network has the document once, and what
// it may have besides is counted.
func TestSending_I10_KilledBetweenItsCommits(t *testing.T) {
	for name, row := range map[string]struct {
		plan   Plan
		files  int // that reach the network
		unused int // of them, by the ledger
	}{
		"Spared":                     {nil, 3, 0},
		"BeforeTheFilesAreAnnounced": {StrikeAt(3, Die, isCommit), 3, 0},
		"FilesAnnounced":             {StrikeAt(3, DieDone, isCommit), 3, 3},
		"BeforeTheFirstFile":         {StrikeAt(1, Die, isCall("network-file")()), 4, 3},
		"AfterTheSecondFile":         {StrikeAt(2, DieDone, isCall("network-file")()), 5, 3},
		"BeforeTheDocumentAnnounced": {StrikeAt(4, Die, isCommit), 6, 3},
		"DocumentAnnounced":          {StrikeAt(4, DieDone, isCommit), 3, 0},
		"BeforeThePOST":              {StrikeAt(1, Die, isCall("network-send")()), 3, 0},
		"AfterThePOST":               {StrikeAt(1, DieDone, isCall("network-send")()), 3, 0},
		"BeforeTheOutcome":           {StrikeAt(5, Die, isCommit), 3, 0},
		"OutcomeCommitted":           {StrikeAt(5, DieDone, isCommit), 3, 0},
	} {
		t.Run(name, func(t *testing.T) {
			kit.ParallelBubble(t, func(t *testing.T) {
				e, files := sendOne(t, row.plan, documentWith(3))
				kit.Want(t, "files that reached the network", files, row.files)
				kit.Want(t, "files that no document uses, at most", e.CountUnusedFiles(), row.unused)
			})
		})
	}
}

// TestSending_I10_AStoredFileIsNotSentTwice has the fifth of seven files fail in
// each way. The four before it are not sent again, and the document names all.
func TestSending_I10_AStoredFileIsNotSentTwice(t *testing.T) {
	for name, row := range map[string]struct {
		fault  emulator.Fault
		unused int
	}{
		"Unanswered":   {emulator.Fault{Kind: emulator.Abort, IsAfterWork: true}, 1},
		"Overloaded":   {emulator.Fault{Kind: emulator.Status, Status: 503, RetryAfter: time.Minute}, 1},
		"Denied":       {emulator.Fault{Kind: emulator.Status, Status: 403}, 0},
		"NotConnected": {emulator.Fault{Kind: emulator.Refuse}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			kit.ParallelBubble(t, func(t *testing.T) {
				e, files := sendOne(t, func(op Op) Strike {
					if op.Name == "network-file" && op.N == 5 {
						return Strike{Call: row.fault}
					}
					return Strike{}
				}, documentWith(7))
				kit.Want(t, "files that reached the network", files, 8)
				kit.Want(t, "files that no document uses", e.CountUnusedFiles(), row.unused)
				kit.Want(t, "files of the document", len(e.StoredFiles), 7)
			})
		})
	}
}

// TestSending_G3_CommitsOfADocument counts the commits until a document is sent:
// claimed, sealed, its files announced, and their numbers with its own intent.
// They do not grow with its files.
func TestSending_G3_CommitsOfADocument(t *testing.T) {
	for n, want := range map[int]int{0: 3, 1: 4, 7: 4} {
		t.Run(fmt.Sprintf("%dFiles", n), func(t *testing.T) {
			kit.ParallelBubble(t, func(t *testing.T) {
				commits, before := 0, 0
				sendOne(t, func(op Op) Strike {
					switch {
					case op.Seam == Commits:
						commits = op.All
					case op.Name == "network-send":
						before = commits
					}
					return Strike{}
				}, documentWith(n))
				kit.Want(t, "commits until it is sent", before, want)
			})
		})
	}
}
