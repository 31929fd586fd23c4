package relay

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"time"
)

// Bounds of an answer.
const (
	fetchLimit = 2500 * time.Millisecond
	maxAnswer  = 64 << 10 // bytes
	maxServers = 8
	maxURLs    = 8 // of one server
	maxText    = 512
)

// ErrEndpoint: the address is not an http or https one.
var ErrEndpoint = errors.New("not an http:// or https:// address")

// Answer is the JSON of POST …/api/turn.
type Answer struct {
	ICEServers []ICEServer `json:"iceServers"`
	TTL        int64       `json:"ttl"` // seconds
	Provider   string      `json:"provider,omitempty"`
	ExpiresAt  int64       `json:"expiresAt,omitempty"` // milliseconds since 1970
}

// ICEServer is one relay as browsers write it.
type ICEServer struct {
	URLs       urlList `json:"urls"`
	Username   string  `json:"username,omitempty"`
	Credential string  `json:"credential,omitempty"`
}

// urlList is one text or a list of texts.
type urlList []string

// UnmarshalJSON reads either.
func (l *urlList) UnmarshalJSON(b []byte) error {
	var one string
	if json.Unmarshal(b, &one) == nil {
		*l = urlList{one}
		return nil
	}
	var many []string
	if err := json.Unmarshal(b, &many); err != nil {
		return errors.New("urls: neither a text nor a list of texts")
	}
	*l = many
	return nil
}

// Servers returns the entries that can be used, eight at most; what is not a relay with user and password is left out.
func (a Answer) Servers() []Server {
	var out []Server
	for _, e := range a.ICEServers {
		s := Server{User: e.Username, Credential: e.Credential}
		for _, u := range e.URLs {
			if valid, ok := ValidURL(u); ok && len(s.URLs) < maxURLs {
				s.URLs = append(s.URLs, valid)
			}
		}
		if s.Usable() && len(s.User) <= maxText && len(s.Credential) <= maxText && len(out) < maxServers {
			out = append(out, s)
		}
	}
	return out
}

// Lifetime is how long the passwords of a hold; 0 when it does not say.
func (a Answer) Lifetime() time.Duration {
	return time.Duration(min(max(a.TTL, 0), int64(maxTTL/time.Second))) * time.Second
}

// Fetch asks an endpoint for relays. None and no error means that it offers none. It takes 2.5 s at most, and follows no
// redirect: the passwords are to come from where the person said. A nil client is http.DefaultClient's transport.
func Fetch(ctx context.Context, endpoint string, client *http.Client) ([]Server, time.Duration, error) {
	u, err := url.Parse(endpoint)
	if err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http" {
		return nil, 0, fmt.Errorf("relay: %w", ErrEndpoint) // its text may hold a password
	}
	where := u.Scheme + "://" + u.Host + u.Path
	ctx, cancel := context.WithTimeout(ctx, fetchLimit)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, endpoint, http.NoBody)
	if err != nil {
		return nil, 0, fmt.Errorf("relay: %w", ErrEndpoint)
	}
	asking := http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	if client != nil {
		asking.Transport = client.Transport
	}
	res, err := asking.Do(req)
	if err != nil {
		var ue *url.Error
		if errors.As(err, &ue) {
			err = ue.Err // without the address, which may hold a password
		}
		return nil, 0, fmt.Errorf("relay: %s: %w", where, err)
	}
	defer func() { _ = res.Body.Close() }()
	switch res.StatusCode {
	case http.StatusNoContent:
		return nil, 0, nil
	case http.StatusOK:
	default:
		return nil, 0, fmt.Errorf("relay: %s: status %d", where, res.StatusCode)
	}
	body, err := io.ReadAll(io.LimitReader(res.Body, maxAnswer+1))
	if err != nil {
		return nil, 0, fmt.Errorf("relay: %s: %w", where, err)
	}
	if len(body) > maxAnswer {
		return nil, 0, fmt.Errorf("relay: %s: an answer of more than %d bytes", where, maxAnswer)
	}
	var a Answer
	if err := json.Unmarshal(body, &a); err != nil {
		return nil, 0, fmt.Errorf("relay: %s: the answer can't be read", where) // what it says may hold a password
	}
	return a.Servers(), a.Lifetime(), nil
}
