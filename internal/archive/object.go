package archive

import (
	"cmp"
	"crypto/hmac"
	"crypto/sha256"
	"net/url"
	"slices"
	"strings"
)

// ObjectDigest identifies an object at the service's store without telling its name: it is made with a key of the ledger. Zero:
// not known.
type ObjectDigest [16]byte

// IsZero reports whether the object is not known.
func (d ObjectDigest) IsZero() bool { return d == ObjectDigest{} }

// ObjectDigest returns the digest of the object that the address leads to, under a key.
func (u PresignedURL) ObjectDigest(key []byte) (d ObjectDigest) {
	mac := hmac.New(sha256.New, key)
	mac.Write([]byte(u.Object()))
	copy(d[:], mac.Sum(nil))
	return d
}

// Object names the object that an address leads to: addresses with one name lead to one object, whoever signed them
// and when. The name is as secret as the address, for it may hold what the service calls a document.
//
// These differences do not count: the scheme, the case of the host, a dot after it, the standard port, escapes in path and query,
// the order of parameters, and the parameters that only grant access (see [isGrant]). Any other parameter counts, because some
// stores name the object in the query. At Amazon's and Google's own hosts the bucket may stand in the host or in the path, and
// the region does not count.
//
// It cannot know that two hosts are one store, that a parameter outside the list is part of a grant, or that a store treats two
// paths as one. Such addresses get two names.
func (u PresignedURL) Object() string {
	host, key, ok := u.parts()
	if !ok {
		return string(u)
	}
	return host + key
}

// LeadsToSameObject reports whether to, to which a store redirects an upload to u, names the same object. A store redirects so
// when the bucket lies in another region: the hosts may differ, and the bucket may stand in the path or not.
func (u PresignedURL) LeadsToSameObject(to PresignedURL) bool {
	_, from, ok := u.parts()
	_, there, ok2 := to.parts()
	return ok && ok2 && (from == there || behindBucket(from) == there || from == behindBucket(there))
}

// behindBucket returns a key without the first part of its path; itself where it has one part alone.
func behindBucket(key string) string {
	if at := strings.Index(key[1:], "/"); at > 0 && at+2 < len(key) {
		return key[1+at:]
	}
	return key
}

// parts splits an address into the host and the key that name its object. The key begins with a slash.
func (u PresignedURL) parts() (host, key string, ok bool) {
	p, err := url.Parse(string(u))
	if err != nil || p.Host == "" || p.Opaque != "" {
		return "", "", false
	}
	host, key = strings.ToLower(strings.TrimSuffix(p.Hostname(), ".")), p.Path
	key = cmp.Or(key, "/")
	if port := p.Port(); port != "" && port != map[string]string{"http": "80", "https": "443"}[p.Scheme] {
		host += ":" + port
	}
	if store, bucket := knownStore(host); store != "" {
		host = store
		if bucket != "" {
			key = "/" + bucket + key
		}
	}
	return host, key + "?" + strings.Join(objectParameters(p.RawQuery), "&"), true
}

// knownStore splits the host of a store of which it is public how it names a bucket: before the host, or first in the
// path. The bucket is empty where the path has it; store is empty for every other host.
func knownStore(host string) (store, bucket string) {
	if before, google := strings.CutSuffix(host, "storage.googleapis.com"); google && (before == "" || strings.HasSuffix(before, ".")) {
		return "storage.googleapis.com", strings.TrimSuffix(before, ".")
	}
	before, amazon := strings.CutSuffix(strings.TrimSuffix(host, ".cn"), ".amazonaws.com")
	if !amazon {
		return "", ""
	}
	labels := strings.Split(before, ".")
	for i, label := range slices.Backward(labels) { // behind it stand the region and the kind of access
		if label == "s3" || strings.HasPrefix(label, "s3-") {
			return "amazonaws.com", strings.Join(labels[:i], ".")
		}
	}
	return "", ""
}

// param is one parameter of a query.
type param struct {
	name    string // in lower case
	written string // with its name and value, without escapes where it can be read
}

// parseParameters returns the parameters of a query.
func parseParameters(query string) (all []param) {
	for written := range strings.SplitSeq(query, "&") {
		if written == "" {
			continue
		}
		if plain, err := url.QueryUnescape(written); err == nil {
			written = plain
		}
		name, _, _ := strings.Cut(written, "=")
		all = append(all, param{strings.ToLower(name), written})
	}
	return all
}

// objectParameters returns the parameters of a query that may name an object, in order.
func objectParameters(query string) (names []string) {
	all := parseParameters(query)
	for _, p := range all {
		if !isGrant(p.name, all) {
			names = append(names, p.written)
		}
	}
	slices.Sort(names)
	return names
}

// isGrant reports whether a parameter only tells who may use an address and for how long. The parameters of older signatures have
// common names, so they count as a grant only beside a signature.
func isGrant(name string, all []param) bool {
	if strings.HasPrefix(name, "x-amz-") || strings.HasPrefix(name, "x-goog-") {
		return true
	}
	has := func(name string) bool { return slices.ContainsFunc(all, func(p param) bool { return p.name == name }) }
	switch name {
	case "x-id": // the name of the operation, which Amazon's library adds
		return has("x-amz-signature")
	case "signature", "expires", "awsaccesskeyid", "googleaccessid", "accesskeyid", "policy", "key-pair-id":
		return has("signature")
	case "sig", "se", "st", "sp", "sv", "sr", "spr", "sip", "ss", "srt", "skoid", "sktid", "skt", "ske", "sks", "skv": // Azure
		return has("sig") && has("se") && has("sp")
	}
	return false
}
