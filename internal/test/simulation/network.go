package simulation

import (
	"bytes"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"vaultd/internal/apicall"
	"vaultd/internal/archive"
	"vaultd/internal/daemon"
	"vaultd/internal/dropwork"
	"vaultd/internal/emulator"
	"vaultd/internal/ingest"
	"vaultd/internal/ledger"
	"vaultd/internal/networkapi"
	"vaultd/internal/packager"
	"vaultd/internal/watch"
)

// Network says how a world sends and receives documents over the business network. The zero value is not at all.
type Network struct {
	Drops          int           // drop folders for it
	Every          time.Duration // between two lists of notifications
	PageSize       int           // notifications in one answer; 0: as the client has it
	OwnAccount     bool          // credentials of its own; in a world of tokens always
	Workers        int
	Settle, Rescan time.Duration
	Copies         bool          // of what is sent, into the drop of the first vault
	CheckedAfter   time.Duration // from a notification that names the file of a check until that can be fetched
	Receives       bool          // documents come in, and go into the drop of the first vault
	Confirms       bool          // the network is told that each came
	TrustsType     bool          // whatever the network lists as received documents is one
}

var networkAccount = emulator.Account{Name: "network", Secret: "secret of network"}

const documentName = "document.json"

// oneNetworkDrop is a drop for the business network in a world in which everything happens soon.
func oneNetworkDrop() Network {
	return Network{Drops: 1, Every: 10 * time.Minute, Workers: 2, Settle: time.Second, Rescan: time.Minute}
}

// isNetworkDrop reports whether the i-th drop is one for the business network. They come last.
func (w *World) isNetworkDrop(i int) bool { return i >= w.cfg.Vaults+len(w.cfg.PDFs.Drops) }

// MakeDocument returns the n-th folder of a seed for the business network: an invoice or a credit note, and up to three files.
func MakeDocument(seed uint64, n int, is Nature) Folder {
	r := rand.New(rand.NewPCG(seed, 1<<48+uint64(n)))
	f := Folder{Name: fmt.Sprintf("Rechnung %d-%d", seed, n), Number: fmt.Sprintf("N %d/%d", seed, n), Files: map[string][]byte{}}
	kind := []archive.NetworkKind{archive.NetworkInvoice, archive.NetworkInvoice, archive.NetworkCreditNote}[r.IntN(3)]
	for _, name := range []string{"rechnung.pdf", "anlage 1.csv", "bild ä.png"}[:r.IntN(4)] {
		f.Files[name] = drawContent(r, drawSize(r))
	}
	f.Files[documentName] = fmt.Appendf(nil, `{"documentType":%q,
	"data":{"externalDocumentIdentifier":{"id":%q},"issueDate":"1999-%02d-%02d","documentCurrencyCode":"EUR",
		"accountingSupplierParty":{"partyName":"Müller & Söhne"},"accountingCustomerParty":{"partyName":"Acme AG"},
		"taxTotal":{"taxSubtotals":[{"taxableAmount":9007199254740993.%02d,"percent":19}]}},
	"processingPreference":{"sentTo":{"id":"1234567890123","schemeId":"GLN"}}}`, kind, f.Number, 1+r.IntN(12), 1+r.IntN(28), r.IntN(100))
	switch is {
	case FaultyDocument:
		f.Files[documentName] = [][]byte{[]byte(`{"documentType":"Invoice"}`), []byte(`{"documentType":"Bill","data":{}}`), []byte(`{`)}[r.IntN(3)]
	case VirusDocument:
		f.Files["virus.pdf"] = fmt.Appendf(nil, "%d %s", n, emulator.VirusMarker)
	}
	return f
}

// CopyDocumentToDropAgain returns the same document and files under another name.
func (f Folder) CopyDocumentToDropAgain(time int) Folder {
	f.Name += fmt.Sprintf(" (%d)", time)
	return f
}

// networkNumber is the number under which a folder for the network goes first.
func (f Folder) networkNumber() archive.RemoteID {
	document := archive.Sum(f.Files[documentName])
	var files []archive.File
	for _, name := range slices.Sorted(maps.Keys(f.Files)) {
		if name != documentName {
			files = append(files, archive.File{Path: name, Size: int64(len(f.Files[name])), SHA256: archive.Sum(f.Files[name])})
		}
	}
	return archive.NewBumID(archive.DeriveNetworkID(archive.NetworkContent(files, document), document).String())
}

// addNetwork configures the drops for the business network and their service.
func (w *World) addNetwork(cfg *daemon.Config, api *apicall.API) {
	w.t.Helper()
	n := w.cfg.Network
	if n.Drops == 0 {
		return
	}
	auth := apicall.Auth{Method: apicall.Basic, Username: "vaultd", Secret: func() (string, error) { return "secret", nil }}
	if n.OwnAccount || w.cfg.OAuth {
		auth.Username, auth.Secret = networkAccount.Name, func() (string, error) { return networkAccount.Secret, nil }
	}
	own, err := api.WithAuth(auth)
	w.failOn(err)
	client := networkapi.New(networkapi.Config{API: own, PageSize: n.PageSize})
	if cfg.Routes == nil {
		cfg.Routes = map[ledger.Route]ingest.Route{}
	}
	cfg.Routes[ledger.Network] = ingest.Route{Sender: networkapi.Sender{Client: client, Types: networkapi.DefaultFileTypes()}, Workers: max(n.Workers, 1), BatchSize: 1}
	cfg.Notices = &daemon.Notices{Service: client, Every: n.Every}
	w.addReceiving(cfg, client)
	if n.Copies {
		cfg.ArchiveSent = vaultName(0)
	}
	rules := packager.NetworkRules{Read: networkapi.ReadMetadata, CheckFileName: networkapi.CheckFileName, MaxDocument: networkapi.MaxDocument, Check: checkDocument}
	for i := w.cfg.Vaults + len(w.cfg.PDFs.Drops); i < w.countDrops(); i++ {
		cfg.Drops = append(cfg.Drops, dropwork.Settings{Name: w.dropName(i), Path: w.DropPath(i), Route: ledger.Network, Network: rules,
			Rules: packager.Rules{Sidecar: documentName, Compression: "fast"}, Mode: watch.Poll, Settle: n.Settle, Rescan: n.Rescan})
	}
}

// checkDocument is what a drop checks of a document.
func checkDocument(document []byte) (faults []packager.DocumentFault) {
	for _, f := range networkapi.CheckDocument(document) {
		faults = append(faults, packager.DocumentFault(f))
	}
	return faults
}

// PublishForeign makes the network tell of documents that are none of this world: of an invoice or a credit note of another program, and of an
// order.
func (w *World) PublishForeign(r *rand.Rand) {
	w.t.Helper()
	for _, kind := range []string{string(archive.NetworkInvoice), string(archive.NetworkCreditNote), "Order"}[:1+r.IntN(3)] {
		var b bytes.Buffer
		fmt.Fprintf(&b, "%08x-0000-4000-8000-%012x", r.Uint32(), r.Uint64()>>16)
		pair := strings.Fields([]string{"TechnicalAccept Delivered", "TechnicalReject Undelivered", "BusinessReject DocumentRejected"}[r.IntN(3)])
		_, err := w.emulator.PublishNotice(emulator.NetworkNotice{BumID: b.String(), DocumentType: kind, ResponseCode: pair[0], ActionCode: pair[1]})
		w.failOn(err)
	}
}

// OccupyNumber says that somebody else has the number of a folder in the network.
func (w *World) OccupyNumber(f Folder) {
	w.t.Helper()
	number := f.networkNumber()
	w.occupied[number] = true
	w.failOn(w.emulator.OccupyBumID(string(number)))
}
