package proof

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"
)

// Role is the end that makes a proof.
type Role string

// The roles: of who joins and of the host, of who dialed and of who was dialed.
const (
	Join   Role = "join"
	Host   Role = "host"
	Dial   Role = "dial"
	Accept Role = "accept"
)

// Cred is what kind of secret a proof is made with.
type Cred string

// The secrets of a room: the key of its invite link, and the pass of a device that was let in.
const (
	Key  Cred = "key"
	Pass Cred = "pass"
)

const (
	commitLabel = "pooled-commit-v1"
	passLabel   = "pooled-pass-id-v1"
	authLabel   = "pooled-auth-v1"
	digitsLabel = "pooled-sas-v1"
	meshLabel   = "pooled-mesh-v1"

	nonceBytes = 16
	meshBytes  = 32
	digestLen  = 64 // characters of a digest or MAC
	passIDLen  = 32
	meshKeyLen = 43
	secretMin  = 22 // characters of a nonce, a key or a pass
	secretMax  = 64
	sasModulus = 1_000_000
	sasHex     = 8
)

// NewNonce draws 16 random bytes: 22 characters of base64url.
func NewNonce() string { return random(nonceBytes) }

// NewPass draws a pass; it looks as a nonce does.
func NewPass() string { return random(nonceBytes) }

// NewMeshKey draws the key of a room's device links, 43 characters.
func NewMeshKey() string { return random(meshBytes) }

func random(n int) string {
	b := make([]byte, n)
	_, _ = rand.Read(b) // never fails
	return text(b)
}

// ValidSecret reports whether s has the form of a nonce, an invite key or a pass: 22 to 64 characters A-Z a-z 0-9 _ -.
func ValidSecret(s string) bool { return len(s) >= secretMin && len(s) <= secretMax && isBase64(s) }

// ValidMeshKey reports whether s has the form of a mesh key.
func ValidMeshKey(s string) bool { return len(s) == meshKeyLen && isBase64(s) }

// ValidDigest reports whether s has the form of a commitment or a proof: 64 characters of lower-case hex.
func ValidDigest(s string) bool { return len(s) == digestLen && isHex(s) }

// ValidPassID reports whether s has the form of a pass id: 32 characters of lower-case hex.
func ValidPassID(s string) bool { return len(s) == passIDLen && isHex(s) }

func isBase64(s string) bool {
	return strings.IndexFunc(s, func(c rune) bool {
		return !(c >= 'A' && c <= 'Z' || c >= 'a' && c <= 'z' || c >= '0' && c <= '9' || c == '_' || c == '-')
	}) < 0
}

func isHex(s string) bool {
	return strings.IndexFunc(s, func(c rune) bool { return !(c >= '0' && c <= '9' || c >= 'a' && c <= 'f') }) < 0
}

// Equal compares in a time that does not depend on where a and b differ.
func Equal(a, b string) bool { return subtle.ConstantTimeCompare([]byte(a), []byte(b)) == 1 }

func sha(lines ...string) string {
	sum := sha256.Sum256([]byte(strings.Join(lines, "\n")))
	return hex.EncodeToString(sum[:])
}

func mac(secret string, lines ...string) string {
	m := hmac.New(sha256.New, []byte(secret))
	m.Write([]byte(strings.Join(lines, "\n")))
	return hex.EncodeToString(m.Sum(nil))
}

// Commitment is what who joins sends of its nonce before it knows the host's (the field jc).
func Commitment(nonce string) string { return sha(commitLabel, nonce) }

// PassHash is what a host keeps of a pass, and the secret that proofs of a pass are made with.
func PassHash(pass string) string { return sha(pass) }

// PassID names a pass to the host without showing it (the field pid).
func PassID(passHash string) string { return sha(passLabel, passHash)[:passIDLen] }

// Link is a link between who joins and the host.
type Link struct {
	Binding string // see Binding; a link without one proves nothing
	Joiner  string // signaling ids
	Host    string
}

// Proof is the proof of one end that it knows the secret (an invite key or a pass hash); jn and hn are the nonces of who joins
// and of the host. It is empty on a link without a binding, and for nonces that can't be any.
func (l Link) Proof(r Role, c Cred, secret, jn, hn string) string {
	if !l.binds(jn, hn) {
		return ""
	}
	return mac(secret, authLabel, "role="+string(r), "cred="+string(c), "fp="+l.Binding, "ids="+l.Joiner+","+l.Host, "jn="+jn, "hn="+hn)
}

// Digits are the six digits that both people see when nobody is between them, as "146 036"; empty on a link without a
// binding. Whoever is between has one try in a million for each join, because jn was committed to before hn was known.
func (l Link) Digits(jn, hn string) string {
	if !l.binds(jn, hn) {
		return ""
	}
	n, _ := strconv.ParseUint(sha(digitsLabel, l.Binding, jn, hn)[:sasHex], 16, 32) // eight digits of hex always parse
	return fmt.Sprintf("%03d %03d", n%sasModulus/1000, n%1000)
}

func (l Link) binds(jn, hn string) bool {
	return l.Binding != "" && ValidSecret(jn) && ValidSecret(hn)
}

// Mesh is the proof of one end of a link between two devices, or of a further association of a link: that it knows the
// room's mesh key. dialer and acceptor are the signaling ids, r is Dial or Accept. It is empty without a binding.
func Mesh(key, binding, dialer, acceptor string, r Role) string {
	if binding == "" {
		return ""
	}
	return mac(key, meshLabel, "role="+string(r), "fp="+binding, "ids="+dialer+","+acceptor)
}

func text(b []byte) string { return base64.RawURLEncoding.EncodeToString(b) }
