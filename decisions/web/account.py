"""Signing in and out."""

from django.contrib.auth.views import LoginView, LogoutView


class Login(LoginView):
    """The login page; who is signed in already goes on to where they wanted."""

    template_name = "login.html"
    redirect_authenticated_user = True


class Logout(LogoutView):
    """Signing out is a POST."""

    http_method_names = ["post", "options"]
