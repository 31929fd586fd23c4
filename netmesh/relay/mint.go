package relay

import (
	"crypto/hmac"
	"crypto/sha1" //nolint:gosec // what relay servers compute: RFC 5766's long-term credentials as coturn derives them
	"encoding/base64"
	"strconv"
	"strings"
	"time"
)

// Lifetimes of passwords.
const (
	defaultTTL = 6 * time.Hour
	minTTL     = 600 * time.Second
	maxTTL     = 86400 * time.Second
	// assumedTTL is the lifetime of relays that came without one.
	assumedTTL = time.Hour
	minRefresh = time.Minute
)

// tag is the part of the user name after the expiry; relays only look at the expiry.
const tag = "pooled"

// Mint makes a password that a relay which knows secret accepts until ttl after now: the user is "expiry:pooled", expiry in
// seconds since 1970, the password base64(HMAC-SHA1(secret, user)) (coturn's use-auth-secret).
func Mint(secret string, ttl time.Duration, now time.Time) (user, credential string) {
	user = strconv.FormatInt(now.Add(ttl).Unix(), 10) + ":" + tag
	mac := hmac.New(sha1.New, []byte(secret))
	mac.Write([]byte(user)) // never fails
	return user, base64.StdEncoding.EncodeToString(mac.Sum(nil))
}

// TTL reads a lifetime in seconds: 6 hours when s is empty or no number, at least 10 minutes, a day at most.
func TTL(s string) time.Duration {
	n, err := strconv.ParseFloat(strings.TrimSpace(s), 64)
	if err != nil || !(n > 0) {
		return defaultTTL
	}
	return time.Duration(min(max(n, minTTL.Seconds()), maxTTL.Seconds())) * time.Second
}

// RefreshAfter is when relays that live for ttl should be asked for again: after three quarters of it, and not sooner than
// after a minute. Relays without a lifetime count as living for an hour.
func RefreshAfter(ttl time.Duration) time.Duration {
	if ttl <= 0 {
		ttl = assumedTTL
	}
	return max(min(ttl, maxTTL)*3/4, minRefresh)
}
