package present

import (
	"time"

	"vaultd/internal/archive"
	"vaultd/internal/ledger"
)

// ListRow is one object of "list --json"; its keys and their order never change.
type ListRow struct {
	Key          string     `json:"key"`
	ClientUUID   *string    `json:"clientUUID"`
	BumID        *string    `json:"bumId"`
	Vault        string     `json:"vault"`
	Drop         string     `json:"drop"`
	Folder       string     `json:"folder"`
	DocumentID   *string    `json:"documentId"`
	State        string     `json:"state"`
	Source       string     `json:"source"`
	SHA256       *string    `json:"sha256"`
	Size         *int64     `json:"size"`
	SeenAt       *time.Time `json:"seenAt"`
	RegisteredAt *time.Time `json:"registeredAt"`
	UploadedAt   *time.Time `json:"uploadedAt"`
	ArchivedAt   *time.Time `json:"archivedAt"`
	Reason       *string    `json:"reason"`

	AsRead   *archive.AsRead `json:"asRead"`   // null: what is told of the document was checked
	First    *Original       `json:"first"`    // that a duplicate repeats
	Warnings []Remark        `json:"warnings"` // what a person should look at

	Route       string     `json:"route"`       // vault, pdf or network
	DeliveredAt *time.Time `json:"deliveredAt"` // null: it is not delivered
	Recipient   *string    `json:"recipient"`   // whom it is for; null: not known
	Means       *string    `json:"means"`       // how the business network delivered it, in its word; null: not told
}

// NewListRow makes the object of an entry.
func NewListRow(c Clock, e ledger.Entry, d Details) ListRow {
	r := ListRow{
		Key: e.Key.String(), BumID: TextOrNil(string(RemoteNumber(e))), Vault: string(e.Vault), Drop: e.Drop, Folder: e.Folder,
		DocumentID: TextOrNil(d.Number), State: e.State.String(), Source: e.Source.String(),
		SeenAt: TimeOrNil(e.SeenAt), RegisteredAt: TimeOrNil(e.RegisteredAt), UploadedAt: TimeOrNil(e.UploadedAt), ArchivedAt: TimeOrNil(e.ArchivedAt),
		Reason: TextOrNil(reasonOf(e)), First: d.Original, Warnings: d.Remarks, Route: string(e.Route), Recipient: TextOrNil(d.Recipient), Means: TextOrNil(e.Means),
	}
	if e.State == ledger.Delivered { // its upload was its delivery
		r.UploadedAt, r.DeliveredAt = nil, TimeOrNil(e.CompletedAt())
	}
	if !d.AsRead.IsZero() {
		r.AsRead = &d.AsRead
	}
	if d.Original != nil {
		r.Reason = TextOrNil(d.Original.Describe(c.Location))
	}
	if !e.ID.IsZero() {
		r.ClientUUID = TextOrNil(e.ID.String())
	}
	if !e.Package.IsZero() {
		r.SHA256, r.Size = TextOrNil(e.Package.SHA256.String()), &e.Package.Size
	}
	return r
}
