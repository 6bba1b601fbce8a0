package openid

// Fill takes all free places of logins at the provider.
func Fill(p *Provider) (leave func()) { return fill(p.places) }

// FillEnding takes all free places of logouts of the provider.
func FillEnding(p *Provider) (leave func()) { return fill(p.ending) }

func fill(places chan struct{}) (leave func()) {
	free := cap(places) - len(places)
	for range free {
		places <- struct{}{}
	}
	return func() {
		for range free {
			<-places
		}
	}
}

// InUse is the number of taken places.
func InUse(p *Provider) int { return len(p.places) + len(p.ending) }
