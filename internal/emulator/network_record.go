package emulator

import (
	"encoding/json"
	"slices"
	"sort"
	"time"
)

// The journal's kinds of the business network.
const (
	kindNetworkFile          = "network-file"           // a file was stored
	kindNetworkFileSent      = "network-file-sent"      // a file of a received document was sent to its last byte
	kindNetworkPosted        = "network-posted"         // a document reached the service, whatever became of the call
	kindNetworkSent          = "network-sent"           // a document was accepted
	kindNetworkReceived      = "network-received"       // a document waits for the client
	kindNetworkFetched       = "network-fetched"        // a received document was sent to its last byte
	kindNetworkNotices       = "network-notices"        // notifications wait for the client
	kindNetworkAcknowledged  = "network-acknowledged"   // a notification is shown no more
	kindNetworkNotified      = "network-notified"       // the client posted a notification
	kindNetworkWord          = "network-word"           // a word about a received document reached the service, whatever became of the call
	kindNetworkWordPermitted = "network-word-permitted" // a person may say one more of them
	kindNetworkOccupied      = "network-occupied"       // another client has this number
	kindNetworkDirectory     = "network-directory-set"  // what the directory has from now on
	kindNetworkListed        = "network-listed"         // an answer of the directory named a valid line of a company
)

// NetworkFile is one file of a document: one that the client stored, or one of a received document.
type NetworkFile struct {
	ID       string `json:"id"` // 24 hex digits
	BumID    string `json:"bumId"`
	FileType string `json:"fileType"` // imageFile, attachmentFile or dataFile
	Name     string `json:"name"`
	SHA256   string `json:"sha256"`
	Size     int64  `json:"size"`

	WasSent    bool `json:"-"` // to the client, to its last byte
	isReceived bool
}

// NetworkNotice is one notification about a document.
type NetworkNotice struct {
	AcknowledgementID string           `json:"acknowledgementId,omitempty"` // empty in one that the client posted without it
	BumID             string           `json:"bumId"`
	DocumentType      string           `json:"documentType"` // Invoice, CreditNote, Order, OrderCancellation, OrderChange or Catalogue
	ResponseCode      string           `json:"responseCode,omitempty"`
	ActionCode        string           `json:"actionCode,omitempty"`
	Properties        []NoticeProperty `json:"properties,omitempty"`
	Description       string           `json:"description,omitempty"`
	At                time.Time        `json:"at"`                  // when it was made
	Late              time.Duration    `json:"late,omitempty"`      // it is listed so much later than it was made
	LinksTo           string           `json:"linksTo,omitempty"`   // the document that its link leads to; empty: BumID
	Announces         bool             `json:"announces,omitempty"` // a received document; the readings choose its two codes

	By string `json:"by,omitempty"` // the account that posted it; empty: the main one, or it is the network's own

	IsAcknowledged bool `json:"-"`
}

// listedFrom returns when a notification is listed first.
func (n *NetworkNotice) listedFrom() time.Time { return n.At.Add(n.Late) }

// NoticeProperty is one of its additionalActionProperties.
type NoticeProperty struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// networkLine is what a line of the journal says of the business network.
type networkLine struct {
	DocumentKind string          `json:"documentKind,omitempty"`
	FileID       string          `json:"fileId,omitempty"`
	Files        []NetworkFile   `json:"files,omitempty"`
	Refs         []string        `json:"refs,omitempty"`
	DataSHA256   string          `json:"dataSHA256,omitempty"`
	Outcomes     []string        `json:"outcomes,omitempty"`
	Origin       json.RawMessage `json:"origin,omitempty"`
	Notices      []NetworkNotice `json:"notices,omitempty"`
	Acknowledged string          `json:"acknowledged,omitempty"`
	Word         string          `json:"word,omitempty"` // both codes
	Directory    []DirectoryLine `json:"directory,omitempty"`
	Listed       string          `json:"listed,omitempty"` // a SIREN
}

// networkDocument is a document as the server keeps it.
type networkDocument struct {
	kind, bumID string
	isReceived  bool
	sha256      string // of the body of a sent document, of the data of a received one
	dataSHA256  string
	origin      json.RawMessage
	files       []*NetworkFile
	acceptedAt  time.Time
	accepted    int
	outcomes    []string
	wasSent     bool            // to the client that receives it, to its last byte
	notified    []NetworkNotice // that the client posted about it
}

// postedDocument is what came first under a bumId.
type postedDocument struct {
	kind, sha256 string
	times        int
}

// networkState is the memory of the business network: the sum of its lines in the journal.
type networkState struct {
	all             []*networkDocument // in the order in which they came
	documents       map[string]*networkDocument
	occupied        map[string]bool // by bumId: another client has it
	posted          map[string]*postedDocument
	files           map[string]*NetworkFile
	validationFiles map[string]*NetworkNotice // that names the file, by reference
	notices         []*NetworkNotice          // every one, in the order in which they were made
	byAck           map[string]*NetworkNotice
	open            []*NetworkNotice    // by the time from which they are listed; acknowledged ones leave it now and then
	openDead        int                 // how many of open are acknowledged
	words           map[string][]string // by bumId: all words of a person that reached the service
	permittedWords  map[string]int      // by bumId: how many more than the first one a person may say

	lastAcknowledged *NetworkNotice
	directory        []DirectoryLine
	hasDirectory     bool
	foundListed      map[string][]time.Time // by SIREN: when an answer named a valid line of it
	firstFiles       map[string]time.Time   // by bumId: when the first file for it was stored
}

func newNetworkState() networkState {
	return networkState{documents: map[string]*networkDocument{}, occupied: map[string]bool{}, posted: map[string]*postedDocument{},
		files: map[string]*NetworkFile{}, validationFiles: map[string]*NetworkNotice{}, byAck: map[string]*NetworkNotice{},
		words: map[string][]string{}, permittedWords: map[string]int{}, foundListed: map[string][]time.Time{}, firstFiles: map[string]time.Time{}}
}

func (n *networkState) isInUse(bumID string) bool {
	return n.documents[bumID] != nil || n.occupied[bumID]
}

// applyLine changes the memory by a line of the journal, live and at replay.
func (n *networkState) applyLine(l journalLine) {
	switch l.Kind {
	case kindNetworkFile:
		f := l.Network.Files[0]
		n.files[f.ID] = &f
		if _, has := n.firstFiles[f.BumID]; !has {
			n.firstFiles[f.BumID] = l.Time
		}
	case kindNetworkFileSent:
		n.files[l.Network.FileID].WasSent = true
	case kindNetworkPosted:
		if n.posted[l.BumID] == nil {
			n.posted[l.BumID] = &postedDocument{kind: l.Network.DocumentKind, sha256: l.SHA256}
		}
		n.posted[l.BumID].times++
	case kindNetworkSent:
		n.addSent(l)
	case kindNetworkReceived:
		n.addReceived(l)
	case kindNetworkFetched:
		n.documents[l.BumID].wasSent = true
	case kindNetworkNotices:
		n.addNotices(l.Network.Notices)
	case kindNetworkAcknowledged:
		n.acknowledge(l.Network.Acknowledged)
	case kindNetworkNotified:
		d := n.documents[l.BumID]
		d.notified = append(d.notified, l.Network.Notices...)
	case kindNetworkWord:
		n.words[l.BumID] = append(n.words[l.BumID], l.Network.Word)
	case kindNetworkWordPermitted:
		n.permittedWords[l.BumID]++
	case kindNetworkOccupied:
		n.occupied[l.BumID] = true
	case kindNetworkDirectory:
		n.directory, n.hasDirectory = l.Network.Directory, true
	case kindNetworkListed:
		n.foundListed[l.Network.Listed] = append(n.foundListed[l.Network.Listed], l.Time)
	}
}

func (n *networkState) addSent(l journalLine) {
	d := n.documents[l.BumID]
	if d == nil {
		d = &networkDocument{kind: l.Network.DocumentKind, bumID: l.BumID, sha256: l.SHA256, dataSHA256: l.Network.DataSHA256, outcomes: l.Network.Outcomes,
			acceptedAt: l.Time, origin: json.RawMessage(`{"source":"SendingCustomer","sourceContentCategory":"StructuredData","sourceChannelCategory":"Electronic"}`)}
		n.all, n.documents[d.bumID] = append(n.all, d), d
		for _, ref := range l.Network.Refs {
			d.files = append(d.files, n.files[ref])
		}
	}
	d.accepted++
	n.addNotices(l.Network.Notices)
}

func (n *networkState) addReceived(l journalLine) {
	d := &networkDocument{kind: l.Network.DocumentKind, bumID: l.BumID, isReceived: true, sha256: l.SHA256, dataSHA256: l.SHA256,
		acceptedAt: l.Time, origin: l.Network.Origin}
	n.all, n.documents[d.bumID] = append(n.all, d), d
	for _, f := range l.Network.Files {
		f.isReceived = true
		n.files[f.ID] = &f
		d.files = append(d.files, &f)
	}
	n.addNotices(l.Network.Notices)
}

// addNotices adds notifications. Those with one time keep the order in which they came.
func (n *networkState) addNotices(notices []NetworkNotice) {
	for _, one := range notices {
		added := &one
		n.notices = append(n.notices, added)
		n.byAck[one.AcknowledgementID] = added
		at := sort.Search(len(n.open), func(i int) bool { return n.open[i].listedFrom().After(one.listedFrom()) })
		n.open = slices.Insert(n.open, at, added)
		for _, p := range one.Properties {
			if p.Name == validationFileReference {
				n.validationFiles[p.Value] = added
			}
		}
	}
}

// acknowledge hides a notification. The list of the open ones is made anew when half of it is hidden, so that a hundred thousand of them
// take no quadratic time.
func (n *networkState) acknowledge(id string) {
	n.byAck[id].IsAcknowledged, n.lastAcknowledged = true, n.byAck[id]
	if n.openDead++; n.openDead > len(n.open)/2 {
		n.open = slices.DeleteFunc(n.open, func(o *NetworkNotice) bool { return o.IsAcknowledged })
		n.openDead = 0
	}
}

// listed returns the notifications that wait at a time, the oldest first.
func (n *networkState) listed(now time.Time) (all []*NetworkNotice) {
	for _, o := range n.open {
		if o.listedFrom().After(now) {
			break
		}
		if !o.IsAcknowledged {
			all = append(all, o)
		}
	}
	return all
}
