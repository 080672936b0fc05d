package ingest

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"vaultd/internal/archive"
	"vaultd/internal/ledger"
)

// Target is what one circuit breaker guards: one thing that work needs and that can fail by itself.
// It is comparable, and [ParseTarget] reads what [Target.String] writes. The zero Target stands for the ledger alone, whose
// breaker never opens.
type Target struct {
	Service Service
	Purpose Purpose
	Vault   archive.VaultID // of an ArchiveService
	Drop    string          // a drop folder of the Disk; of a service without vaults: the drop that it registers for
	Place   string          // below the drop folder, such as "_archived", where folders of many ended entries are kept
	Entry   archive.Key     // the one ended entry that alone needs its folder
}

// Pause is what people are told of a circuit breaker that is not closed.
type Pause struct {
	Target Target
	Since  time.Time
	Next   time.Time // of the next probe; zero: only a person or a restart closes it
	Asked  time.Time // until then the other side asked to be left alone; zero: it did not
	Cause  ledger.Cause
	// ConfigKey is where the drop of the target stands in the configuration, as
	// "drops[2]"; empty: the target has none.
	ConfigKey string
}

// Service is who serves a target.
type Service uint8

// The services.
const (
	Disk           Service = iota + 1 // the file systems of this machine
	ArchiveService                    // the archive service, with the object store behind its upload addresses
	PDFService                        // the PDF flow of the accounts-payable system, with the object store behind its upload addresses
	NetworkService                    // the business network
)

// Purpose is what a target is needed for. A service that answers for one purpose proves nothing about another one.
type Purpose uint8

// The purposes.
const (
	ToRegister Purpose = iota + 1 // documents of a vault
	ToUpload                      // packages of a vault, to the object store: it may refuse one vault's and take another's
	ToAsk                         // what became of a vault's documents
	ToStore                       // packages in the spool
	ToReach                       // the folders of a drop
	ToMove                        // the folders of ended entries: of all in one place, or of one entry
	ToDispose                     // of a drop's archived folders
)

// RegisterTarget is the archive service as far as it registers documents of a vault.
func RegisterTarget(v archive.VaultID) Target {
	return Target{Service: ArchiveService, Purpose: ToRegister, Vault: v}
}

// UploadTarget is the object store behind the upload addresses of a vault.
func UploadTarget(v archive.VaultID) Target {
	return Target{Service: ArchiveService, Purpose: ToUpload, Vault: v}
}

// dropService is the service of a route without vaults: a row for each such route. It registers for a drop, because each drop has
// addresses of its own: one that the service refuses stops no other drop.
type dropService struct {
	route        ledger.Route
	service      Service
	registerWord string // before the name of the drop
	storeWord    string
	startsGently bool // the service asks for few calls at once when they begin
}

var dropServices = []dropService{
	{ledger.PDF, PDFService, "pdf flow for drop ", "pdf store", true},
	{ledger.Network, NetworkService, "network for drop ", "business network", false},
}

// dropServiceOf returns the row for which is holds; known is false where there is none.
func dropServiceOf(is func(dropService) bool) (row dropService, known bool) {
	if i := slices.IndexFunc(dropServices, is); i >= 0 {
		return dropServices[i], true
	}
	return dropService{}, false
}

func dropServiceOfTarget(t Target) (row dropService, known bool) {
	return dropServiceOf(func(s dropService) bool { return s.service == t.Service })
}

func dropServiceOfRoute(r ledger.Route) (row dropService, known bool) {
	return dropServiceOf(func(s dropService) bool { return s.route == r })
}

func (s dropService) registerTarget(drop string) Target {
	return Target{Service: s.service, Purpose: ToRegister, Drop: drop}
}

func (s dropService) storeTarget() Target { return Target{Service: s.service, Purpose: ToUpload} }

// PDFTarget is the PDF flow as far as it registers documents from a drop.
func PDFTarget(drop string) Target {
	return Target{Service: PDFService, Purpose: ToRegister, Drop: drop}
}

// PDFStoreTarget is the object store behind the upload addresses of the PDF flow.
func PDFStoreTarget() Target { return Target{Service: PDFService, Purpose: ToUpload} }

// AskTarget is the archive service as far as it answers questions about documents of a vault.
func AskTarget(v archive.VaultID) Target {
	return Target{Service: ArchiveService, Purpose: ToAsk, Vault: v}
}

// SpoolTarget is the disk where packages wait for their upload.
func SpoolTarget() Target { return Target{Service: Disk, Purpose: ToStore} }

// DropTarget is a drop folder.
func DropTarget(name string) Target { return Target{Service: Disk, Purpose: ToReach, Drop: name} }

// DisposalTarget is the disposal of a drop's archived folders.
func DisposalTarget(name string) Target {
	return Target{Service: Disk, Purpose: ToDispose, Drop: name}
}

// PlaceTarget is a place in a drop folder where folders of many ended entries are kept, or are to be moved to.
func PlaceTarget(place, drop string) Target {
	return Target{Service: Disk, Purpose: ToMove, Drop: drop, Place: place}
}

// FolderTarget is the folder of one ended entry.
func FolderTarget(k archive.Key) Target { return Target{Service: Disk, Purpose: ToMove, Entry: k} }

// The words of which the text of a target is made.
const (
	dropWord     = "drop "
	vaultWord    = "vault "
	storeWord    = "store of vault "
	statusWord   = "status of vault "
	disposalWord = "disposal of "
	folderWord   = "folder "
	placeWord    = " of drop "
	spoolWord    = "spool"
)

// String returns the words by which people know a target, as "store of vault NAME". They stand in the status, in metrics
// and in logs, and are what a person types.
func (t Target) String() string {
	if row, is := dropServiceOfTarget(t); is {
		if t.Purpose == ToUpload {
			return row.storeWord
		}
		return row.registerWord + t.Drop
	}
	switch t.Purpose {
	case ToRegister:
		return vaultWord + string(t.Vault)
	case ToUpload:
		return storeWord + string(t.Vault)
	case ToAsk:
		return statusWord + string(t.Vault)
	case ToStore:
		return spoolWord
	case ToReach:
		return dropWord + t.Drop
	case ToDispose:
		return disposalWord + t.Drop
	case ToMove:
		if t.Drop == "" {
			return folderWord + t.Entry.String()
		}
		return t.Place + placeWord + t.Drop
	}
	return ""
}

// ParseTarget reads the words of [Target.String]. No other code takes them apart.
func ParseTarget(text string) (Target, error) {
	for word, target := range map[string]func(string) Target{
		vaultWord:    func(name string) Target { return RegisterTarget(archive.VaultID(name)) },
		storeWord:    func(name string) Target { return UploadTarget(archive.VaultID(name)) },
		statusWord:   func(name string) Target { return AskTarget(archive.VaultID(name)) },
		dropWord:     DropTarget,
		disposalWord: DisposalTarget,
	} {
		if name, is := strings.CutPrefix(text, word); is && name != "" {
			return target(name), nil
		}
	}
	for _, row := range dropServices {
		if name, is := strings.CutPrefix(text, row.registerWord); is && name != "" {
			return row.registerTarget(name), nil
		}
		if text == row.storeWord {
			return row.storeTarget(), nil
		}
	}
	if text == spoolWord {
		return SpoolTarget(), nil
	}
	if key, is := strings.CutPrefix(text, folderWord); is {
		k, err := archive.ParseKey(key)
		return FolderTarget(k), err
	}
	if place, drop, is := strings.Cut(text, placeWord); is && place != "" && drop != "" {
		return PlaceTarget(place, drop), nil
	}
	return Target{}, fmt.Errorf("%q is nothing that can be paused", text)
}

// Queue returns the name of the queue whose work needs t, see [ledger.QueueOf]; empty: t belongs to no single queue.
func (t Target) Queue() string {
	row, is := dropServiceOfTarget(t)
	switch {
	case is:
		return ledger.ServiceQueue(row.route, "")
	case t.Vault != "":
		return vaultWord + string(t.Vault)
	case t.Drop != "":
		return dropWord + t.Drop
	}
	return ""
}

// targetOf returns what all work of a queue needs.
func targetOf(queue string) Target {
	if drop, is := strings.CutPrefix(queue, dropWord); is {
		return DropTarget(drop)
	}
	if _, is := dropServiceOfRoute(ledger.Route(queue)); is {
		return Target{} // each of its drops needs another one
	}
	return RegisterTarget(vaultOf(queue))
}

// registerTargetOf returns what the registration of an entry needs.
func registerTargetOf(e ledger.Entry) Target {
	if row, is := dropServiceOfRoute(e.Route); is {
		return row.registerTarget(e.Drop)
	}
	return RegisterTarget(e.Vault)
}

// registerTargetOfQueue returns the target whose limiter counts the
// registrations of a service queue.
func registerTargetOfQueue(queue string) Target {
	if row, is := dropServiceOfRoute(ledger.Route(queue)); is {
		return row.registerTarget("")
	}
	return RegisterTarget(vaultOf(queue))
}

// uploadTargetOf returns what the uploads of a queue need.
func uploadTargetOf(queue string) Target {
	if row, is := dropServiceOfRoute(ledger.Route(queue)); is {
		return row.storeTarget()
	}
	return UploadTarget(vaultOf(queue))
}

// storeOf returns what the upload of an entry needs.
func storeOf(e ledger.Entry) Target { return uploadTargetOf(ledger.ServiceQueueOf(e)) }

// vaultOf returns the vault of a queue that holds work for the archive service.
func vaultOf(queue string) archive.VaultID {
	return archive.VaultID(strings.TrimPrefix(queue, vaultWord))
}

// dropOf returns the drop of a queue that holds work on its disk.
func dropOf(queue string) string { return strings.TrimPrefix(queue, dropWord) }

// steps returns the steps that need t.
func (t Target) steps() []ledger.Step {
	switch t.Purpose {
	case ToRegister:
		return []ledger.Step{ledger.Register}
	case ToUpload: // without tickets, a registration brings the next upload
		return []ledger.Step{ledger.Register, ledger.Upload}
	case ToAsk:
		return []ledger.Step{ledger.Ask}
	case ToStore:
		return []ledger.Step{ledger.Seal}
	case ToReach:
		return []ledger.Step{ledger.Seal, ledger.Place, ledger.Dispose}
	case ToMove:
		return []ledger.Step{ledger.Place, ledger.Dispose}
	case ToDispose:
		return []ledger.Step{ledger.Dispose}
	}
	return nil
}

// TargetsOf returns what a step of an entry needs, as people are told when it does not go on.
func TargetsOf(e ledger.Entry, s ledger.Step) []Target {
	switch s {
	case ledger.Seal:
		return []Target{DropTarget(e.Drop), SpoolTarget()}
	case ledger.Register:
		return []Target{registerTargetOf(e)}
	case ledger.Upload:
		return []Target{storeOf(e)}
	case ledger.Ask:
		return []Target{RegisterTarget(e.Vault), AskTarget(e.Vault)}
	case ledger.Place:
		return []Target{DropTarget(e.Drop), FolderTarget(e.Key)}
	case ledger.Dispose:
		return []Target{DropTarget(e.Drop), DisposalTarget(e.Drop), FolderTarget(e.Key)}
	}
	return nil
}
