package archive

import (
	"testing"

	"vaultd/internal/test/kit"
)

const (
	signedOnce  = "X-Amz-Algorithm=AWS4-HMAC-SHA256&X-Amz-Credential=A%2F20260303&X-Amz-Date=20260303T121201Z&X-Amz-Expires=900&X-Amz-SignedHeaders=host&X-Amz-Signature=11"
	signedAgain = "X-Amz-Signature=22&x-amz-date=20260303T130000Z&X-Amz-Expires=60&X-Amz-Security-Token=t%2Fu&X-Amz-Algorithm=AWS4-HMAC-SHA256&x-id=PutObject"
)

// Addresses that lead to one object have one name, those that lead to two have two.
func TestObject_I8_OneNameForOneObject(t *testing.T) {
	rows := []struct {
		name, a, b string
		same       bool
	}{
		{"TheSame", "https://b.example/k.zip?" + signedOnce, "https://b.example/k.zip?" + signedOnce, true},
		{"SignedAgain", "https://b.example/k.zip?" + signedOnce, "https://b.example/k.zip?" + signedAgain, true},
		{"OtherKey", "https://b.example/k.zip?" + signedOnce, "https://b.example/l.zip?" + signedOnce, false},
		{"OtherHost", "https://b.example/k.zip?" + signedOnce, "https://c.example/k.zip?" + signedOnce, false},
		{"OtherCaseOfTheKey", "https://b.example/k.zip?" + signedOnce, "https://b.example/K.zip?" + signedOnce, false},
		{"CaseOfSchemeAndHost", "https://b.example/k?" + signedOnce, "HTTPS://B.Example/k?" + signedOnce, true},
		{"StandardPort", "https://b.example/k?" + signedOnce, "https://b.example:443/k?" + signedOnce, true},
		{"OtherPort", "https://b.example/k?" + signedOnce, "https://b.example:8443/k?" + signedOnce, false},
		{"OtherScheme", "https://localhost/k?" + signedOnce, "http://localhost:80/k?" + signedOnce, true},
		{"DotBehindTheHost", "https://b.example/k?" + signedOnce, "https://b.example./k?" + signedOnce, true},
		{"EscapesInThePath", "https://b.example/a%2Fk%2Ezip?" + signedOnce, "https://b.example/a/k.zip?" + signedOnce, true},
		{"CaseOfAnEscape", "https://b.example/%c3%bc?" + signedOnce, "https://b.example/%C3%BC?" + signedOnce, true},
		{"KeyInTheQuery", "https://b.example/put?key=a&" + signedOnce, "https://b.example/put?key=b&" + signedOnce, false},
		{"KeyInTheQuerySignedAgain", "https://b.example/put?key=a%2Eb&" + signedOnce, "https://b.example/put?" + signedAgain + "&key=a.b", true},
		{"KeyInTheQueryUnsigned", "https://b.example/put?expires=1", "https://b.example/put?expires=2", false},
		{"TwoKeys", "https://b.example/put?k=a&k=b&" + signedOnce, "https://b.example/put?k=b&" + signedOnce, false},
		{"BadEscape", "https://b.example/put?k=%zz&" + signedOnce, "https://b.example/put?k=%zy&" + signedOnce, false},
		{"EmptyParameters", "https://b.example/k?&&" + signedOnce, "https://b.example/k?" + signedOnce + "&", true},
		{"OlderSignature", "https://b.example/k?AWSAccessKeyId=A&Expires=1&Signature=1", "https://b.example/k?AWSAccessKeyId=A&Expires=2&Signature=2", true},
		{"Google", "https://storage.googleapis.com/b/k?X-Goog-Signature=1", "https://b.storage.googleapis.com/k?X-Goog-Signature=2", true},
		{"Azure", "https://a.blob.example/c/k?sv=1&se=2&sp=w&sig=3", "https://a.blob.example/c/k?sv=1&se=4&sp=w&sig=5", true},
		{"NotAzure", "https://a.example/k?sv=1", "https://a.example/k?sv=2", false},
		{"BucketInTheHost", "https://b.s3.eu-central-1.amazonaws.com/k?" + signedOnce, "https://s3.eu-central-1.amazonaws.com/b/k?" + signedAgain, true},
		{"OldHostOfAmazon", "https://b.s3.eu-central-1.amazonaws.com/k?" + signedOnce, "https://s3.amazonaws.com/b/k?" + signedAgain, true},
		{"BucketWithDots", "https://a.b.s3-eu-west-1.amazonaws.com/k?" + signedOnce, "https://s3.dualstack.eu-west-1.amazonaws.com/a.b/k?" + signedAgain, true},
		{"OtherBucket", "https://b.s3.eu-central-1.amazonaws.com/k?" + signedOnce, "https://s3.eu-central-1.amazonaws.com/c/k?" + signedOnce, false},
		{"NotAmazon", "https://s3.amazonaws.com.example/b/k?" + signedOnce, "https://s3.amazonaws.com/b/k?" + signedOnce, false},
		{"Unreadable", "https://b.example/%zz", "https://b.example/%zy", false},
	}
	for _, r := range rows {
		t.Run(r.name, func(t *testing.T) {
			a, b := PresignedURL(r.a).Object(), PresignedURL(r.b).Object()
			kit.Check(t, (a == b) == r.same, "%q\n%q\nwant (a == b) = %v", a, b, r.same)
			kit.Lacks(t, "the text", a, "Signature")
		})
	}
}

// A store may send an upload on to another host, and to no other object.
func TestLeadsOn_I8_SameObjectElsewhere(t *testing.T) {
	for to, same := range map[string]bool{
		"https://b.eu.example/dir/k.zip?" + signedAgain:  true,
		"https://eu.example/b/dir/k.zip?" + signedAgain:  true,
		"https://b.example/dir/%6B.zip?" + signedAgain:   true,
		"https://dir.example/k.zip?" + signedAgain:       true, // dir may be a bucket
		"https://b.eu.example/dir/l.zip?" + signedAgain:  false,
		"https://b.eu.example/dir/k.zip/x?" + signedOnce: false,
		"https://b.eu.example/a/b/dir/k.zip":             false,
		"https://b.eu.example/dir/k.zip?key=l":           false,
		"https://b.eu.example/":                          false,
		"https://b.eu.example/%zz":                       false,
	} {
		got := PresignedURL("https://b.example/dir/k.zip?" + signedOnce).LeadsToSameObject(PresignedURL(to))
		kit.Check(t, got == same, "%s: %v, want got = %v", to, got, same)
	}
	kit.Check(t, !PresignedURL("https://b.example/k.zip").LeadsToSameObject("https://b.example/"),
		"the root is no object behind a bucket")
}
