"""A certificate authority for a server on loopback, made anew each time, and what it signs."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from ipaddress import IPv4Address

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

LOOPBACK = IPv4Address("127.0.0.1")
_LIFETIME = timedelta(days=1)


@dataclass(frozen=True)
class Certificate:
    """A certificate and its key in PEM."""

    certificate: str
    key: str = field(repr=False)


class CertificateAuthority:
    """Signs certificates that are valid for a day."""

    def __init__(self) -> None:
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = _name("relaunch-local-ca")
        usage = x509.KeyUsage(
            digital_signature=False,
            content_commitment=False,
            key_encipherment=False,
            data_encipherment=False,
            key_agreement=False,
            key_cert_sign=True,
            crl_sign=True,
            encipher_only=False,
            decipher_only=False,
        )
        builder = _builder(self._name, self._name, self._key.public_key())
        builder = builder.add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        self._certificate = builder.add_extension(usage, critical=True).sign(self._key, hashes.SHA256())

    @property
    def certificate(self) -> str:
        """The authority's certificate in PEM."""
        return _pem(self._certificate)

    def issue_server(self, names: Sequence[str] = ()) -> Certificate:
        """Sign a certificate for a server on 127.0.0.1, and for these names of hosts."""
        return self._issue(names[0] if names else "kube-apiserver", ExtendedKeyUsageOID.SERVER_AUTH, names)

    def issue_client(self, user: str) -> Certificate:
        """Sign a certificate for a user."""
        return self._issue(user, ExtendedKeyUsageOID.CLIENT_AUTH)

    def _issue(self, name: str, usage: x509.ObjectIdentifier, hosts: Sequence[str] = ()) -> Certificate:
        key = ec.generate_private_key(ec.SECP256R1())
        issuer = x509.AuthorityKeyIdentifier.from_issuer_public_key(self._key.public_key())
        names = x509.SubjectAlternativeName([x509.IPAddress(LOOPBACK), *map(x509.DNSName, hosts)])
        builder = _builder(_name(name), self._name, key.public_key())
        builder = builder.add_extension(names, critical=False).add_extension(issuer, critical=False)
        builder = builder.add_extension(x509.ExtendedKeyUsage([usage]), critical=False)
        return Certificate(_pem(builder.sign(self._key, hashes.SHA256())), _key_pem(key))


def _name(common_name: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, common_name)])


def _builder(subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePublicKey) -> x509.CertificateBuilder:
    # TLS libraries compare with the wall clock, whatever clock the simulation has.
    now = datetime.now(UTC)
    return x509.CertificateBuilder(
        issuer_name=issuer,
        subject_name=subject,
        public_key=key,
        serial_number=x509.random_serial_number(),
        not_valid_before=now - timedelta(minutes=5),
        not_valid_after=now + _LIFETIME,
        extensions=[
            x509.Extension(
                x509.SubjectKeyIdentifier.oid, critical=False, value=x509.SubjectKeyIdentifier.from_public_key(key)
            )
        ],
    )


def _pem(certificate: x509.Certificate) -> str:
    return certificate.public_bytes(serialization.Encoding.PEM).decode("ascii")


def _key_pem(key: ec.EllipticCurvePrivateKey) -> str:
    return key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    ).decode("ascii")
