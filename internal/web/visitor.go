package web

import "context"

// Rights say what a visitor may do. One right does not imply another.
type Rights struct {
	Read    bool // see documents: names, numbers, parties, texts, reports
	Fetch   bool // download a document from the archive, which may be charged
	Metrics bool // read /metrics and the reasons of the health pages
}

// Visitor is who asks for a page. The zero value is a visitor without any right: it may see counts and states only.
type Visitor struct {
	Name       string // of the user; empty: nobody has signed in
	Rights     Rights
	Token      string // for the hidden field "token" of every form; empty: forms are not sent
	MaySignIn  bool   // there are users, and nobody has signed in
	MaySignOut bool   // signed in with a session
}

// visitorKey is the key of the visitor in a request's context.
type visitorKey struct{}

// WithVisitor returns a context that holds v. Handler puts the visitor there; other callers are tests of pages.
func WithVisitor(ctx context.Context, v Visitor) context.Context {
	return context.WithValue(ctx, visitorKey{}, v)
}

// VisitorOf returns the visitor in ctx, or the zero value when there is none.
func VisitorOf(ctx context.Context) Visitor {
	v, _ := ctx.Value(visitorKey{}).(Visitor)
	return v
}
