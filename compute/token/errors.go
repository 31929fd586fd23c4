package token

import "errors"

// ErrVocab is wrapped by every error of New: the vocabulary can't be used, and why.
var ErrVocab = errors.New("token: vocabulary")

// ErrNoChat means that the vocabulary lacks a token which every conversation needs.
var ErrNoChat = errors.New("token: vocabulary has no chat token")

// ErrID means that a segment carries an id which the vocabulary doesn't have.
var ErrID = errors.New("token: id outside the vocabulary")

// ErrAsk means that a request can't be rendered: its JSON is broken, or a role is unknown.
var ErrAsk = errors.New("token: request")
