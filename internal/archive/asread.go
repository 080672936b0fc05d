package archive

// MaxAsRead bounds each field of AsRead, in bytes.
const MaxAsRead = 500

// AsRead is what a sidecar says, letter by letter, in fields that nobody checked. It helps people to find a folder that was refused
// or repeats another one. Nothing is decided, counted or sent by it.
type AsRead struct {
	Type          string `json:"documentType,omitempty"`
	Number        string `json:"documentId,omitempty"`
	Date          string `json:"documentDate,omitempty"` // perhaps 31.10.2026
	SenderName    string `json:"senderName,omitempty"`
	SenderIDs     string `json:"senderIds,omitempty"` // joined by ", "
	RecipientName string `json:"recipientName,omitempty"`
	RecipientIDs  string `json:"recipientIds,omitempty"` // joined by ", "
	Amount        string `json:"amount,omitempty"`       // perhaps 1.234,56
	Currency      string `json:"currencyCode,omitempty"`
}

// IsZero reports whether nothing could be read.
func (a AsRead) IsZero() bool { return a == AsRead{} }
