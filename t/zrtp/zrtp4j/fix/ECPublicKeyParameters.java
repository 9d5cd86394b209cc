/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Stands in for Bouncy Castle's class of this name. ZRTP4J makes public keys without the parameters
 * of their curve, which each Bouncy Castle with the X25519 that it needs refuses: without this
 * class its EC25 and EC38 end by an exception. Here the curve says which parameters it has. */
package org.bouncycastle.crypto.params;

import org.bouncycastle.asn1.sec.SECNamedCurves;
import org.bouncycastle.asn1.x9.X9ECParameters;
import org.bouncycastle.math.ec.ECPoint;

public class ECPublicKeyParameters extends ECKeyParameters {
	private final ECPoint point;

	public ECPublicKeyParameters(ECPoint point, ECDomainParameters parameters) {
		super(false, parameters == null ? of(point) : parameters);
		if (point.isInfinity() || !point.isValid())
			throw new IllegalArgumentException("not a point of the curve");
		this.point = point.normalize();
	}

	private static ECDomainParameters of(ECPoint point) {
		int bits = point.getCurve().getFieldSize();
		X9ECParameters x = SECNamedCurves.getByName("secp" + bits + "r1");

		return new ECDomainParameters(x.getCurve(), x.getG(), x.getN(), x.getH());
	}

	public ECPoint getQ() {
		return point;
	}
}
